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

// twins are two keys in virtual time that get the same requests: one alone, the other in batches.
type twins struct {
	*testing.T
	*rand.Rand
	store  *Store
	client *redis.Client
	now    time.Time
}

// A lone request is decided by a script of its own: the answers, the value and the expiry after two
// of them are those of a batch.
func TestLoneAsInBatch(t *testing.T) {
	VirtualTime(t)
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	client.FlushAll(t.Context())
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, texts := range [][]string{
		{"1000/h burst 20"}, {"20/h", "10/h burst 5", "60/h burst 30"},
		{"20/100s burst 40 stepped"}, {"20/100s burst 40 stepped", "3/7s burst 10 stepped"},
		{"20/h fixed-window", "10/h fixed-window"}, {"20/h sliding-window", "30/h sliding-window"},
		{"20/h sliding-log"},
		{"20/day tz UTC", "10/day tz UTC"}, {"20/month anchor 31", "9/month anchor 31"},
	} {
		var revisions []headgate.Limit
		for _, text := range texts {
			limit, err := headgate.ParseLimit("n=" + text)
			if err != nil {
				t.Fatal(err)
			}
			revisions = append(revisions, limit)
		}
		for seed := range uint64(4) {
			w := &twins{T: t, Rand: rand.New(rand.NewPCG(seed, 7)), store: s, client: client}
			w.now = time.Date(2030, 1, 1, 0, 0, 0, 0,
				time.UTC).Add(time.Microsecond * time.Duration(w.Int64N(24*3600*1e6)))
			byItself := 0
			for range 60 {
				byItself += w.step(fmt.Sprint(texts, seed), revisions[w.IntN(len(revisions))])
			}
			if byItself < 20 {
				t.Errorf("%s: the script for a lone request decided %d of 60", texts, byItself)
			}
		}
	}
}

// step sends a request for each of the keys, and returns 1 if that which was alone took no second
// script.
func (w *twins) step(name string, limit headgate.Limit) (byItself int) {
	const unset = 400 * 24 * time.Hour // is the expiry before each request, so that a new one shows
	w.client.Del(w.Context(), "time")
	w.client.RPush(w.Context(), "time", w.now.Unix(), w.now.Nanosecond()/1000)
	r := headgate.Request{Limit: limit, Cost: 1 + w.Int64N(4)}
	value := func(key string) string { return w.store.key(key, limit.ID()) }
	switch w.IntN(16) {
	case 0:
		r.Cost = 0
	case 1, 2:
		r.Cost = -r.Cost
	case 3:
		r.Cost = -limit.Capacity()
	case 4:
		r.Cost = limit.Capacity() + w.Int64N(2)
	case 5:
		r.MaxWait = time.Hour
	case 6:
		r.Force, r.Cost = true, 1+w.Int64N(2*limit.Capacity())
	case 7:
		other := []string{"not a state", "", "\x03 not a state either."}[w.IntN(3)]
		w.client.Set(w.Context(), value(name+"lone"), other, unset)
		w.client.Set(w.Context(), value(name+"batch"), other, unset)
	case 8:
		w.client.Del(w.Context(), value(name+"lone"), value(name+"batch"))
		w.client.RPush(w.Context(), value(name+"lone"), "list")
		w.client.RPush(w.Context(), value(name+"batch"), "list")
	case 9, 10:
		w.client.Del(w.Context(), value(name+"lone"), value(name+"batch"))
	}
	w.client.PExpire(w.Context(), value(name+"lone"), unset)
	w.client.PExpire(w.Context(), value(name+"batch"), unset)

	take := func(keys ...string) *batch {
		b := newBatch()
		for _, key := range keys {
			r.Key = key
			b.add(w.store.newCall([]headgate.Request{r}, charge))
		}
		w.store.decide([]*batch{b})
		return b
	}
	alone := take(name + "lone")
	many := take("another", name+"batch", name+"batch", "another").calls[1:]
	for i, b := range []*batch{alone, take(name + "lone")} {
		got, want := b.calls[0], many[i]
		if got.decisions[0] != want.decisions[0] || (got.err == nil) != (want.err == nil) {
			w.Errorf("%s, %+v: %+v, %v; in a batch %+v, %v", name, r, got.decisions[0], got.err,
				want.decisions[0], want.err)
		}
	}
	after := func(key string) string {
		renewed := w.client.PTTL(w.Context(), value(key)).Val() < unset-time.Hour
		return fmt.Sprintf("%q, new expiry %t", w.client.Get(w.Context(), value(key)).Val(),
			renewed)
	}
	if got, want := after(name+"lone"), after(name+"batch"); got != want {
		w.Fatalf("%s, %+v: the value is %s; in a batch %s", name, r, got, want)
	}
	if w.IntN(3) > 0 {
		w.now = w.now.Add(time.Microsecond * time.Duration(w.Int64N(600*1e6)))
	}
	if alone.set&slowPath == 0 {
		return 1
	}
	return 0
}
