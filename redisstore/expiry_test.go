package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/redis/go-redis/v9"
)

var everyAlgorithm = []string{"100/m", "100/m stepped", "100/m fixed-window", "100/m sliding-window", "100/m sliding-log"}

// longest is the most that a key lives whose state is needed for d: a quarter more, or the
// shortest span, and two seconds of rounding up and grace.
func longest(d time.Duration) time.Duration {
	return d + max(d/4, 1<<20*time.Microsecond) + 2*time.Second
}

// TestExpiry watches the time to live of a key: to after the reset, but not by much; and not
// touched by denials and looks.
func TestExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range append([]string{"100/w", "100/d fixed-window", "100/30d sliding-log"}, everyAlgorithm...) {
		l := parse(t, text)
		key := t.Name() + ":{k}:" + l.ID()
		ask := func(cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: "k", Limit: l, Cost: cost})
		}
		ttl := func() time.Duration { return client.PTTL(t.Context(), key).Val() }

		d := ask(50)
		if left := ttl(); left < d.ResetAfter || left > longest(d.ResetAfter) {
			t.Errorf("%s: lives for %s; want the reset, %s, at least, and %s at most", text, left, d.ResetAfter, longest(d.ResetAfter))
		}
		client.PExpire(t.Context(), key, 100*24*time.Hour)
		ask(100)
		ask(0)
		if left := ttl(); left < 99*24*time.Hour {
			t.Errorf("%s: a denial or a look changed the expiry to %s", text, left)
		}
		ask(-100)
		if client.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s: a key as at first sight was not deleted", text)
		}
	}
}

// TestNoEndlessKeys leaves no key without expiry, whatever is asked.
func TestNoEndlessKeys(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for range 3000 {
		l := parse(t, everyAlgorithm[rand.IntN(len(everyAlgorithm))]).Named([]string{"a", "b"}[rand.IntN(2)])
		key := []string{"x", "y", "z"}[rand.IntN(3)]
		take(t, s, headgate.Request{Key: key, Limit: l, Cost: rand.Int64N(20) - 5})
	}
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) == 0 {
		t.Fatal("no key was written")
	}
	for _, key := range keys {
		if left := client.PTTL(t.Context(), key).Val(); left <= 0 || left > 3*time.Minute {
			t.Errorf("%q lives for %s", key, left)
		}
	}
}

// TestLivesLongEnough asks random things of every kind for some seconds, by the server's clock and by that of the
// caller: a key lives for at least as long as its state counts, whoever wrote it last and whatever
// the numbers of its limit were then, and not for much longer.
func TestLivesLongEnough(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	texts := []string{"20/s", "5/s burst 40", "5/s burst 4", "9/3s stepped", "9/2s burst 40 stepped", "7/5s fixed-window", "20/5s fixed-window", "10/5s sliding-window", "30/4s sliding-window", "10/2s sliding-log"}
	kept := 0
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		n := rand.IntN(20)
		key := strconv.Itoa(n)
		if rand.IntN(30) == 0 {
			n = rand.IntN(len(texts))
		}
		l := parse(t, texts[n%len(texts)]).Named("n")
		r := headgate.Request{Key: key, Limit: l, Cost: []int64{-1, 1, 1, 2, 5}[rand.IntN(5)]}
		switch rand.IntN(12) {
		case 0:
			r.At = time.Now().Add(time.Duration(rand.Int64N(int64(20*time.Second))) - 10*time.Second)
		case 1:
			r.MaxWait = time.Second
		}
		before := client.PTTL(t.Context(), t.Name()+":{"+key+"}:"+l.ID()).Val()
		if !take(t, s, r).Allowed() || r.Cost < 0 {
			r.At = time.Time{} // it may have written nothing by that time
		}
		asked := time.Now()
		needed := take(t, s, headgate.Request{Key: key, Limit: l, At: r.At}).ResetAfter
		lives := client.PTTL(t.Context(), t.Name()+":{"+key+"}:"+l.ID()).Val()
		if lives <= before && lives > 0 {
			kept++
		}
		if needed > 0 && lives+time.Since(asked)+time.Millisecond < needed || lives > longest(needed)+longest(time.Minute) {
			t.Fatalf("%s: %+v: lives for %s; needed for %s", l, r, lives, needed)
		}
	}
	if kept < 100 {
		t.Errorf("%d writes kept an expiry", kept)
	}
}

// TestExpiryIsSetOnce asks often in a short time: most grants find that their key lives long enough.
func TestExpiryIsSetOnce(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range everyAlgorithm[:4] {
		client.ConfigResetStat(t.Context())
		for range 100 {
			take(t, s, headgate.Request{Key: text, Limit: parse(t, text), Cost: 1})
		}
		if set := calls(t, client, "set"); set > 30 {
			t.Errorf("%s: a hundred grants set an expiry %d times", text, set)
		}
	}
}

// calls is how often the server has run a command since its statistics were reset.
func calls(t *testing.T, client *redis.Client, command string) (n int) {
	t.Helper()
	_, stats, _ := strings.Cut(client.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls=")
	_, _ = fmt.Sscan(strings.Split(stats, ",")[0], &n)
	return n
}

// TestLostExpiry is the lesson of a key that once lost its expiry and blocked its
// user for ever: the state is judged by its time, so the limit recovers; and the next grant that
// needs a later expiry than the key was given sets one.
func TestLostExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range []string{"2/10ms", "2/10ms stepped", "2/10ms fixed-window", "2/10ms sliding-window", "2/10ms sliding-log"} {
		r := headgate.Request{Key: "k", Limit: parse(t, text), Cost: 2}
		key := t.Name() + ":{k}:" + r.Limit.ID()
		take(t, s, r)
		client.Persist(t.Context(), key)
		for deadline := time.Now().Add(10 * time.Second); !take(t, s, r).Allowed() || client.PTTL(t.Context(), key).Val() <= 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: blocked, or without an expiry, for ever", text)
			}
		}
	}
}

// TestBytesPerKey measures what a key takes in Redis, expiry included.
func TestBytesPerKey(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range everyAlgorithm {
		l := parse(t, text).Named("api")
		take(t, s, headgate.Request{Key: "user:123456", Limit: l, Cost: 1})
		key := t.Name() + ":{user:123456}:" + l.ID()
		state := client.StrLen(t.Context(), key).Val()
		bytes := client.MemoryUsage(t.Context(), key).Val()
		t.Logf("%-15s %d bytes of state, %d bytes by MEMORY USAGE with a key of %d", l.Algorithm(), state, bytes, len(key))
		if state > 28 {
			t.Errorf("%s: a state of %d bytes; want at most 28", text, state)
		}
	}
}
