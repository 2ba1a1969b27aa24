package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

var everyAlgorithm = []string{"100/m", "100/m stepped", "100/m fixed-window",
	"100/m sliding-window", "100/m sliding-log"}

// longest is the most that a key lives whose state is needed for d: a quarter more, or the
// shortest span, and two seconds of rounding up and grace.
func longest(d time.Duration) time.Duration {
	return d + d/4 + 3*time.Second
}

// TestExpiry watches the time to live of a key: a quarter longer than until the reset, and not
// touched by denials and peeks.
func TestExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range append([]string{"100/w", "100/d fixed-window", "100/30d sliding-log"},
		everyAlgorithm...) {
		l := parse(t, text)
		key := t.Name() + ":{k}:" + l.ID()
		ask := func(cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: "k", Limit: l, Cost: cost})
		}
		ttl := func() time.Duration { return client.PTTL(t.Context(), key).Val() }

		d := ask(50)
		quarter := d.ResetAfter + d.ResetAfter/4
		if left := ttl(); left < quarter*9/10 || left > longest(d.ResetAfter) {
			t.Errorf("%s: lives for %s; want %s, and seconds more or a tenth less", text, left,
				quarter)
		}
		client.PExpire(t.Context(), key, 100*24*time.Hour)
		ask(100)
		ask(0)
		if left := ttl(); left < 99*24*time.Hour {
			t.Errorf("%s: a denial or a peek changed the expiry to %s", text, left)
		}
		ask(-100)
		if client.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s: a key in its initial state was not deleted", text)
		}
	}
}

// TestNoEndlessKeys leaves no key without expiry, whatever is asked.
func TestNoEndlessKeys(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for range 3000 {
		l := parse(t, everyAlgorithm[rand.IntN(len(everyAlgorithm))]).Named([]string{"a",
			"b"}[rand.IntN(2)])
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

// In virtual time, a key lives for as long as its state is needed, whatever wrote the state, by any
// clock, and whatever the numbers of its limit were then.
func TestLivesLongEnough(t *testing.T) {
	redisstore.VirtualTime(t)
	client := newClient(t)
	s := newStore(t, client)
	const seeds = uint64(10)
	for _, c := range []struct {
		name   string
		limits []string // revisions, which alternate
		do     func(l *lifetimeOf, r *headgate.Request)
	}{
		{"bucket", []string{"1000/h"}, nil},
		{"capacities", []string{"1000/h", "1000/h burst 100", "1000/h burst 3000"}, nil},
		{"rates", []string{"1000/h", "500/h burst 100", "200/h burst 2000"}, nil},
		{"steps", []string{"20/100s burst 2000 stepped"}, nil},
		{"few steps", []string{"3/7s burst 500 stepped", "20/100s burst 2000 stepped"}, nil},
		{"windows", []string{"100/h fixed-window", "300/h fixed-window"}, nil},
		{"sliding", []string{"100/h sliding-window"}, nil},
		{"sliding windows", []string{"100/h sliding-window", "300/h sliding-window"}, nil},
		{"log", []string{"100/h sliding-log"}, nil},
		{"refunds", []string{"1000/h"}, (*lifetimeOf).refund},
		{"bookings", []string{"1000/h"}, (*lifetimeOf).book},
		{"bookings of steps", []string{"20/100s burst 2000 stepped"}, (*lifetimeOf).book},
		{"bookings of windows", []string{"100/h sliding-window"}, (*lifetimeOf).book},
		{"bookings of logs", []string{"100/h sliding-log"}, (*lifetimeOf).book},
		{"excess", []string{"1000/h", "500/h burst 100"}, (*lifetimeOf).force},
		{"excess of steps", []string{"20/100s burst 2000 stepped", "3/7s burst 500 stepped"},
			(*lifetimeOf).force},
		{"excess of windows", []string{"100/h fixed-window"}, (*lifetimeOf).force},
		{"excess of sliding windows", []string{"100/h sliding-window"}, (*lifetimeOf).force},
		{"excess of logs", []string{"100/h sliding-log"}, (*lifetimeOf).force},
		{"callers' clocks", []string{"1000/h"}, (*lifetimeOf).at},
		{"callers' clocks and steps", []string{"20/100s burst 2000 stepped"}, (*lifetimeOf).at},
		{"callers' clocks and few steps", []string{"100/m stepped"}, (*lifetimeOf).at},
		{"callers' clocks and windows", []string{"100/m fixed-window"}, (*lifetimeOf).at},
		{"callers' clocks and sliding windows", []string{"100/m sliding-window"}, (*lifetimeOf).at},
		{"callers' clocks and logs", []string{"100/m sliding-log"}, (*lifetimeOf).at},
		{"a server's clock that steps back", []string{"1000/h"}, (*lifetimeOf).back},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range seeds {
				l := &lifetimeOf{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), client: client,
					key: fmt.Sprint(c.name, seed)}
				l.now = time.Date(2030, 1, 1, 0, 0, 0, 0,
					time.UTC).Add(time.Duration(l.Int64N(int64(24 * time.Hour))))
				for step := range 25 {
					l.step(s, parse(t, c.limits[l.IntN(len(c.limits))]).Named("n"), c.do)
					if t.Failed() {
						t.Fatalf("seed %d, step %d", seed, step)
					}
				}
			}
		})
	}
}

// lifetimeOf is what is known of a key in virtual time.
type lifetimeOf struct {
	*testing.T
	*rand.Rand
	client  *redis.Client
	key     string
	now     time.Time
	expires time.Time
	start   *time.Time
}

// step makes a request, and checks how long the key lives and how long it is needed.
func (l *lifetimeOf) step(
	s *redisstore.Store, limit headgate.Limit, do func(*lifetimeOf, *headgate.Request),
) {
	const unset = 100 * 24 * time.Hour // is the expiry before each request, so that a new one shows
	name := s.Name(l.key, limit)
	l.tell()
	if !l.now.Before(l.expires) {
		l.client.Del(l.Context(), name)
	}
	l.client.PExpire(l.Context(), name, unset)
	r := headgate.Request{Key: l.key, Limit: limit, Cost: 1}
	if l.IntN(6) > 0 {
		r.Cost += l.Int64N(limit.Capacity() / 3)
	}
	if do != nil {
		do(l, &r)
	}
	take(l.T, s, r)
	if left := l.client.PTTL(l.Context(), name).Val(); left < 0 {
		l.expires = time.Time{}
	} else if left < unset-time.Hour {
		l.expires = l.now.Add(left)
	}
	needed := take(l.T, s, headgate.Request{Key: l.key, Limit: limit}).ResetAfter
	if lives := l.expires.Sub(l.now); needed > 0 && lives < needed {
		l.Errorf("%+v: lives for %s; needed for %s", r, lives, needed)
	}
	switch l.IntN(6) { // and else no time passes
	case 0:
		l.now = l.now.Add(time.Duration(l.Int64N(int64(9 * time.Second))))
	case 1:
		l.now = l.now.Add(time.Duration(l.Int64N(int64(3 * time.Minute))))
	case 2, 3:
		l.now = l.now.Add(time.Duration(l.Int64N(int64(needed + time.Second))))
	}
}

// tell lets the server know what time it is.
func (l *lifetimeOf) tell() {
	l.client.Del(l.Context(), "time")
	l.client.RPush(l.Context(), "time", l.now.Unix(), l.now.Nanosecond()/1000)
}

func (l *lifetimeOf) refund(r *headgate.Request) {
	if l.IntN(3) == 0 {
		r.Cost = -r.Cost
	}
}

func (l *lifetimeOf) book(r *headgate.Request) {
	switch l.IntN(3) {
	case 0:
		l.start = new(time.Time)
		r.MaxWait, r.Start = time.Hour, l.start
	case 1:
		if l.start != nil {
			r.Cost, r.Start, l.start = -r.Cost, l.start, nil
		}
	}
}

func (l *lifetimeOf) force(r *headgate.Request) {
	if l.IntN(3) == 0 {
		r.Force, r.Cost = true, r.Cost*4
	}
}

func (l *lifetimeOf) at(r *headgate.Request) {
	if l.IntN(3) == 0 {
		r.At = l.now.Add(time.Duration(l.Int64N(int64(20*time.Minute))) - 10*time.Minute)
	}
}

func (l *lifetimeOf) back(*headgate.Request) {
	if l.IntN(4) == 0 {
		l.now = l.now.Add(-time.Duration(l.Int64N(int64(4 * time.Minute))))
		l.tell()
	}
}

// TestExpiryIsSetOnce asks often in a short time: most grants find that their key lives long
// enough.
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
	_, stats, _ := strings.Cut(client.Info(t.Context(), "commandstats").Val(),
		"cmdstat_"+command+":calls=")
	_, _ = fmt.Sscan(strings.Split(stats, ",")[0], &n)
	return n
}

// A key that lost its expiry blocks no user for ever, and gets it back soon: a batch at once, lone
// requests by one write of sixteen, of a thousand nearly certainly.
func TestLostExpiry(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "k", Limit: parse(t, text), Cost: 50}
		key := t.Name() + ":{k}:" + r.Limit.ID()
		take(t, s, r)
		client.Persist(t.Context(), key)
		for cost, n := int64(1), 0; client.PTTL(t.Context(), key).Val() <= 0; cost = -cost {
			r.Cost = cost
			if d := take(t, s, r); !d.Allowed() {
				t.Fatalf("%s: %+v", text, d)
			}
			if n++; n > 1000 {
				t.Fatalf("%s: the key has no expiry after a thousand grants and refunds", text)
			}
		}
		client.Persist(t.Context(), key)
		other := headgate.Request{Key: "other", Limit: r.Limit, Cost: 1, Force: true}
		r.Force, r.Cost = true, 1
		if err := s.TakeAll(t.Context(), []headgate.Request{r, other},
			make([]headgate.Decision, 2)); err != nil {
			t.Fatal(err)
		}
		if client.PTTL(t.Context(), key).Val() <= 0 {
			t.Errorf("%s: the key has no expiry after a grant in a batch", text)
		}
	}
}
