package limittest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Definitions sends random requests to s and to a naive model of the definitions. It requires the
// same decisions, field by field, and the same start times.
func Definitions(t *testing.T, s headgate.Store) { Agreement(t, s, newModel()) }

// Agreement sends the same random requests to two stores, and requires the same decisions.
func Agreement(t *testing.T, got, want headgate.Store) {
	books := books(t, got)
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			eachSeed(t, 48, func(seed uint64) error {
				random := newSequence(a, seed, books)
				for i := range 80 {
					if err := agree(t, random, got, want); err != nil {
						return fmt.Errorf("request %d: %w", i, err)
					}
				}
				return nil
			})
		})
	}
}

// severalKeys takes groups of several keys, which may lie on several servers. A group that
// is denied there moves the time of a key forward, so the clock does not step back.
func severalKeys(t *testing.T, s headgate.Store) {
	model := newModel()
	eachSeed(t, 20, func(seed uint64) error {
		random := rand.New(rand.NewPCG(seed, 6))
		at := epoch
		for i := range 60 {
			at = at.Add(time.Duration(random.Int64N(int64(time.Second))).Truncate(time.Microsecond))
			var rs []headgate.Request
			for j := range 1 + random.IntN(4) {
				key, l := fmt.Sprint("several ", seed, j), parse(t, everyAlgorithm[random.IntN(5)])
				r := headgate.Request{Key: key, Limit: l, Cost: random.Int64N(60),
					Force: random.IntN(4) == 0, At: at}
				if !r.Force && random.IntN(3) == 0 {
					r.Headroom = random.Int64N(110)
				}
				rs = append(rs, r)
			}
			if _, err := same(t, s, model, rs); err != nil {
				return fmt.Errorf("request %d: %w", i, err)
			}
		}
		return nil
	})
}

// eachSeed runs check with the seeds 1 to n, several at once: with random seeds for as long
// as HEADGATE_SOAK says, or with HEADGATE_SEED alone.
func eachSeed(t *testing.T, n uint64, check func(seed uint64) error) {
	t.Helper()
	next := seeds(t, n)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for seed := range next {
				if err := check(seed); err != nil {
					t.Errorf("%v\nrepeat with HEADGATE_SEED=%d", err, seed)
				}
			}
		})
	}
	wg.Wait()
}

func seeds(t *testing.T, n uint64) <-chan uint64 {
	next := make(chan uint64)
	one, err := strconv.ParseUint(os.Getenv("HEADGATE_SEED"), 10, 64)
	soak, _ := time.ParseDuration(os.Getenv("HEADGATE_SOAK"))
	end := time.Now().Add(soak)
	go func() {
		defer close(next)
		switch {
		case err == nil:
			next <- one
		case soak > 0:
			for time.Now().Before(end) && !t.Failed() {
				next <- rand.Uint64()
			}
		default:
			for i := range n {
				next <- i + 1
			}
		}
	}()
	return next
}

// agree sends one step of the sequence to both stores: a group of requests, or a reset.
func agree(t *testing.T, random *sequence, got, want headgate.Store) error {
	rs := random.next()
	if random.IntN(60) == 0 {
		if err := got.Reset(t.Context(), rs[0].Key, rs[0].Limit); err != nil {
			return err
		}
		return want.Reset(t.Context(), rs[0].Key, rs[0].Limit)
	}
	booked, err := same(t, got, want, rs)
	random.booked = append(random.booked, booked...)
	return err
}

// same puts rs to both stores, and returns those to which both gave a start time.
func same(
	t *testing.T, got, want headgate.Store, rs []headgate.Request,
) (booked []headgate.Request, err error) {
	gs, gotStarts, err := put(t, got, rs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", show(rs[0]), err)
	}
	ws, wantStarts, err := put(t, want, rs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", show(rs[0]), err)
	}
	for i := range rs {
		if gs[i] != ws[i] || !gotStarts[i].Equal(wantStarts[i]) {
			return nil, fmt.Errorf("%d of %d: %s:\n got  %s, start %s\n want %s, start %s", i+1,
				len(rs),
				show(rs[i]), describe(gs[i]), gotStarts[i], describe(ws[i]), wantStarts[i])
		}
		if !wantStarts[i].IsZero() && rs[i].Cost > 0 {
			rs[i].Start = &wantStarts[i]
			booked = append(booked, rs[i])
		}
	}
	return booked, nil
}

// put takes rs of s, with start times of its own.
func put(t *testing.T, s headgate.Store, rs []headgate.Request) (
	ds []headgate.Decision, starts []time.Time, err error,
) {
	rs, ds, starts = slices.Clone(rs), make([]headgate.Decision, len(rs)), make([]time.Time,
		len(rs))
	for i := range rs {
		if rs[i].Start != nil {
			starts[i] = *rs[i].Start
			rs[i].Start = &starts[i]
		}
	}
	if len(rs) == 1 {
		ds[0], err = s.Take(t.Context(), rs[0])
		return ds, starts, err
	}
	return ds, starts, s.TakeAll(t.Context(), rs, ds)
}
