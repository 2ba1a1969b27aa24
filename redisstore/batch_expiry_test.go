package redisstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// batchLife sends batches in which several ask for the same few keys, in virtual time.
type batchLife struct {
	*testing.T
	*rand.Rand
	store   *Store
	client  *redis.Client
	limits  []headgate.Limit // revisions of one
	keys    []string
	now     time.Time
	expires map[string]time.Time // by the name of a key in Redis
	starts  []*time.Time
	said    []string
}

// A key lives for as long as its state is needed, whatever a batch does with it: grants, refunds and
// cancels, alone and in groups, by the server's clock and by others.
func TestLivesLongEnoughInBatches(t *testing.T) {
	VirtualTime(t)
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	client.FlushAll(t.Context())
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const seeds = 4
	for _, texts := range [][]string{
		{"1000/h"}, {"1000/h", "1000/h burst 100", "1000/h burst 3000"}, {"20/100s burst 2000 stepped"}, {"20/100s burst 2000 stepped", "20/100s burst 50 stepped"},
		{"100/h fixed-window"}, {"100/h sliding-window", "30/h sliding-window"}, {"100/h sliding-log"},
	} {
		for seed := range seeds {
			l := &batchLife{T: t, Rand: rand.New(rand.NewPCG(uint64(seed), 3)), store: s, client: client, expires: make(map[string]time.Time)}
			l.now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(l.Int64N(int64(24 * time.Hour)))).Truncate(time.Microsecond)
			l.keys = []string{fmt.Sprint(texts, seed, "a"), fmt.Sprint(texts, seed, "b")}
			for _, text := range texts {
				limit, err := headgate.ParseLimit("n=" + text)
				if err != nil {
					t.Fatal(err)
				}
				l.limits = append(l.limits, limit)
			}
			for range 14 {
				l.step()
			}
		}
	}
}

// step sends a batch, and checks how long the keys live and how long they are needed.
func (l *batchLife) step() {
	const unset = 400 * 24 * time.Hour // is the expiry before each batch, so that a new one shows
	l.client.Del(l.Context(), "time")
	l.client.RPush(l.Context(), "time", l.now.Unix(), l.now.Nanosecond()/1000)
	for _, key := range l.keys {
		name := l.store.key(key, l.limits[0].ID())
		if !l.now.Before(l.expires[name]) {
			l.client.Del(l.Context(), name)
		}
		l.client.PExpire(l.Context(), name, unset)
	}
	b := newBatch()
	l.said = append(l.said, l.now.String())
	for range 1 + l.IntN(4) {
		i := l.IntN(2)
		group := []headgate.Request{l.request(l.keys[i])}
		if l.IntN(3) == 0 {
			group = append(group, l.request(l.keys[1-i]))
		}
		l.said = append(l.said, fmt.Sprintf("%+v", group))
		b.add(l.store.newCall(group, charge))
	}
	calls := b.calls
	l.store.decide([]*batch{b})
	for _, a := range calls {
		if a.err != nil {
			l.Fatalf("%v after %q", a.err, l.said)
		}
	}
	longest := time.Second
	for _, key := range l.keys {
		longest = max(longest, l.check(key, unset))
	}
	if l.IntN(3) > 0 {
		l.now = l.now.Add(time.Duration(l.Int64N(int64(longest)))).Truncate(time.Microsecond)
	}
}

// check wants key to live for as long as it is needed under the revision that needs it least.
func (l *batchLife) check(key string, unset time.Duration) (needed time.Duration) {
	name := l.store.key(key, l.limits[0].ID())
	if left := l.client.PTTL(l.Context(), name).Val(); left < 0 {
		l.expires[name] = time.Time{}
	} else if left < unset-time.Hour {
		l.expires[name] = l.now.Add(left)
	}
	needed = unset
	for _, limit := range l.limits {
		d, err := l.store.Take(l.Context(), headgate.Request{Key: key, Limit: limit})
		if err != nil {
			l.Fatal(err)
		}
		needed = min(needed, d.ResetAfter)
	}
	if lives := l.expires[name].Sub(l.now); needed > 0 && lives < needed {
		l.Fatalf("%s: lives for %s, needed for %s after %q", key, lives, needed, l.said)
	}
	return needed
}

func (l *batchLife) request(key string) headgate.Request {
	limit := l.limits[l.IntN(len(l.limits))]
	r := headgate.Request{Key: key, Limit: limit, Cost: 1 + l.Int64N(limit.Capacity()/3)}
	switch l.IntN(12) {
	case 0, 1:
		r.Cost = -r.Cost
	case 2:
		r.Cost = -limit.Capacity()
	case 3, 4:
		r.At = l.now.Add(time.Duration(l.Int64N(int64(20*time.Minute))) - 10*time.Minute)
	case 5, 6, 7:
		r.MaxWait, r.Start = time.Minute, new(time.Time)
		l.starts = append(l.starts, r.Start)
	case 8:
		if n := len(l.starts); n > 0 {
			r.Cost, r.Start = -r.Cost, l.starts[l.IntN(n)]
		}
	}
	return r
}
