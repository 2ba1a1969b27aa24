package headgate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Random requests of a few keys to stores that are too small for them: plain, booked, forced, in
// groups, refunds and resets. No key is granted more than its limit, and no wait is below 0.
func TestFullStoreIsNeverOver(t *testing.T) {
	for _, limit := range everyAlgorithm(4, time.Second) {
		t.Run(limit.Algorithm().String(), func(t *testing.T) {
			for seed := range uint64(100) {
				f := newFullStore(t, seed, limit)
				for range 500 {
					f.step()
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// fullStore is a store with too few slots, and one with enough, which is charged what the first
// one charges: what the first grants, it has room for.
type fullStore struct {
	t      *testing.T
	random *rand.Rand
	small  *Memory
	big    *Memory
	limits []Limit
	bounds map[Limit]Limit // by which the big store decides
	now    time.Time
}

func newFullStore(t *testing.T, seed uint64, limit Limit) *fullStore {
	random := rand.New(rand.NewPCG(seed, 11))
	f := &fullStore{t: t, random: random, small: NewMemorySize(1 + random.IntN(3)),
		big: NewMemorySize(1000), now: midnight}
	f.limits = []Limit{limit, limit.Named("other")}
	f.bounds = make(map[Limit]Limit)
	for _, l := range f.limits {
		f.bounds[l] = l
		if l.Algorithm() == AlgorithmSteppedTokenBucket { // keys that share a slot share its steps
			f.bounds[l] = Per(l.Refill(), l.Period()).Burst(
				l.Capacity() + l.Refill()).Named("bound-" + fmt.Sprint(l == limit))
		}
	}
	return f
}

func (f *fullStore) step() {
	f.now = f.now.Add(time.Duration(f.random.IntN(300_000)) * time.Duration(
		f.random.IntN(2)) * time.Microsecond)
	switch f.random.IntN(20) {
	case 0:
		r := f.request()
		for store, l := range map[*Memory]Limit{f.small: r.Limit, f.big: f.bounds[r.Limit]} {
			if err := store.Reset(f.t.Context(), r.Key, l); err != nil {
				f.t.Error(err)
			}
		}
	case 1, 2, 3, 4:
		first, second := f.request(), f.request()
		if f.random.IntN(2) == 0 {
			second.Key = first.Key
		}
		if second.Key != first.Key || second.Limit != first.Limit {
			f.takeAll(first, second)
		}
	default:
		f.takeAll(f.request())
	}
}

// request is a request of one of six keys.
func (f *fullStore) request() Request {
	r := Request{
		Key:   string(rune('A' + f.random.IntN(6))),
		Limit: f.limits[f.random.IntN(len(f.limits))],
		Cost:  f.random.Int64N(5),
		At:    f.now,
		Start: new(time.Time),
	}
	switch f.random.IntN(4) {
	case 0:
		r.MaxWait = time.Duration(1+f.random.IntN(3_000_000)) * time.Microsecond
	case 1:
		r.Force = true
		r.Cost *= 1 + f.random.Int64N(2)
	}
	return r
}

// takeAll sends rs, by Take if it is one, and checks and repeats what was charged.
func (f *fullStore) takeAll(rs ...Request) {
	f.t.Helper()
	ds := make([]Decision, len(rs))
	var err error
	if len(rs) == 1 {
		ds[0], err = f.small.Take(f.t.Context(), rs[0])
	} else {
		err = f.small.TakeAll(f.t.Context(), rs, ds)
	}
	if err != nil {
		if len(rs) == 1 || !errors.Is(err, ErrFull) {
			f.t.Errorf("%+v: %v", rs, err)
		}
		return
	}
	for i, d := range ds {
		if d.RetryAfter < 0 || d.ResetAfter < 0 || d.Within(0) != d.Allowed() {
			f.t.Errorf("%+v: %+v", rs[i], d)
		}
	}
	granted := Granted(rs, ds)
	for i, r := range rs {
		switch {
		case r.Cost == 0:
		case r.Force:
			f.repeatForced(r, ds[i])
		case granted:
			f.repeat(r, ds[i])
		case ds[i].Allowed() && ds[i].Remaining < r.Cost:
			f.t.Errorf("%+v is charged in a group that is denied: %+v", r, ds)
		}
	}
}

// repeat charges a grant of the small store to the big one, which must have room for it.
func (f *fullStore) repeat(r Request, d Decision) {
	f.t.Helper()
	start := f.now.Add(d.RetryAfter)
	if r.MaxWait > 0 && !start.Equal(*r.Start) {
		f.t.Errorf("%+v: starts at %v; want %v", r, *r.Start, start)
	}
	again := Request{Key: r.Key, Limit: f.bounds[r.Limit], Cost: r.Cost, At: start}
	if d, err := f.big.Take(f.t.Context(), again); err != nil || !d.Allowed() {
		f.t.Errorf("%+v is granted at %v, and over the limit: %+v, %v", r, start.Sub(midnight),
			d, err)
	}
}

// repeatForced charges what the small store was forced to charge. A key without a slot of its own
// is charged only what fits.
func (f *fullStore) repeatForced(r Request, d Decision) {
	if !d.Allowed() && !own(f.small, r.Key, r.Limit) {
		return
	}
	again := Request{Key: r.Key, Limit: f.bounds[r.Limit], Cost: r.Cost, At: f.now, Force: true}
	if _, err := f.big.Take(f.t.Context(), again); err != nil {
		f.t.Error(err)
	}
}
