package redisstore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

var everyAlgorithm = []string{"100/m", "100/m stepped", "100/m fixed-window", "100/m sliding-window", "100/m sliding-log"}

// TestExpiry watches the time to live of a key: set by every write, to just after
// the reset; not touched by denials and looks; healed after it was lost.
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
		if left := ttl(); left < d.ResetAfter || left > d.ResetAfter+2001*time.Millisecond {
			t.Errorf("%s: lives for %s; want the reset, %s, and two seconds at most", text, left, d.ResetAfter)
		}
		client.PExpire(t.Context(), key, 100*24*time.Hour)
		ask(100)
		ask(0)
		if left := ttl(); left < 99*24*time.Hour {
			t.Errorf("%s: a denial or a look changed the expiry to %s", text, left)
		}
		client.Persist(t.Context(), key)
		ask(1)
		if left := ttl(); left < 0 || left > 3*l.Period() {
			t.Errorf("%s: a key without expiry was not healed: %s", text, left)
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

// TestLostExpiry is the lesson of a key that once lost its expiry and blocked its
// user for ever: the state is judged by its time, and the limit recovers.
func TestLostExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range []string{"2/10ms", "2/10ms stepped", "2/10ms fixed-window", "2/10ms sliding-window", "2/10ms sliding-log"} {
		r := headgate.Request{Key: "k", Limit: parse(t, text), Cost: 2}
		key := t.Name() + ":{k}:" + r.Limit.ID()
		take(t, s, r)
		client.Persist(t.Context(), key)
		for deadline := time.Now().Add(10 * time.Second); !take(t, s, r).Allowed(); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: blocked for ever", text)
			}
		}
		if left := client.PTTL(t.Context(), key).Val(); left <= 0 {
			t.Errorf("%s: still no expiry", text)
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
