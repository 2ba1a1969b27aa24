package httplimit

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

func inSeconds(n int) time.Duration { return time.Duration(n) * time.Second }

// ask prolongs a pause and says what is left of it then.
func ask(t *testing.T, p pauses, d time.Duration) time.Duration {
	t.Helper()
	if err := p.prolong(t.Context(), "k", d); err != nil {
		t.Fatal(err)
	}
	left, err := p.left(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A pause lasts until the latest of the ends that were asked for, and passes by itself.
func TestPausesDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pauses{headgate.NewMemory(10)}
		for _, step := range []struct{ after, asked, want int }{
			{0, 10, 10}, // at 0
			{0, 10, 10}, // again
			{0, 4, 10},  // a shorter one
			{0, 30, 30}, // a longer one
			{0, 10, 30}, // the first again
			{5, 10, 25}, // at 5, one that ends earlier
			{0, 26, 26}, // and one that ends a little later
			{20, 5, 6},  // at 25
			{0, 10, 10}, // until 35
			{10, 0, 0},  // at 35 it is over
			{0, 10, 10}, // and may begin again
			{3, 30, 30}, // at 38, until 68
			{25, 10, 10},
		} {
			time.Sleep(inSeconds(step.after))
			if got := ask(t, p, inSeconds(step.asked)).Round(time.Millisecond); got != inSeconds(step.want) {
				t.Errorf("%+v: %s are left", step, got)
			}
		}
	})
}

// Whoever asks for what at the same time, the longest pause counts.
func TestPausesAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			p := pauses{headgate.NewMemory(10)}
			var all sync.WaitGroup
			longest := time.Duration(0)
			for range 16 {
				d := time.Duration(1+rand.IntN(40)) * time.Second
				longest = max(longest, d)
				all.Go(func() { ask(t, p, d) })
			}
			all.Wait()
			if left := ask(t, p, time.Millisecond).Round(time.Millisecond); left != longest {
				t.Fatalf("%s are left of %s", left, longest)
			}
		}
	})
}

// openStores opens a server as several processes do.
func openStores(t *testing.T, server *redistest.Server, n int) []pauses {
	t.Helper()
	var stores []pauses
	for range n {
		store, err := redisstore.Open(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		stores = append(stores, pauses{store})
	}
	return stores
}

// The same in Redis, by its clock: what is left is what was asked for, less the time
// since then.
func TestPausesInRedis(t *testing.T) {
	server := redistest.Start(t)
	stores := openStores(t, server, 4)
	begun := time.Now()
	for i, step := range []struct{ asked, want int }{
		{10, 10}, {10, 10}, {4, 10}, {30, 30}, {10, 30}, {20, 30}, {31, 31}, {3, 31}, {3600, 3600}, {31, 3600},
	} {
		left := ask(t, stores[i%4], inSeconds(step.asked))
		if want := inSeconds(step.want); left > want || left < want-time.Since(begun) {
			t.Errorf("step %d: %s are left of %s after at most %s", i, left, want, time.Since(begun))
		}
	}
}

func TestPausesAtTheSameTimeInRedis(t *testing.T) {
	server := redistest.Start(t)
	stores := openStores(t, server, 4)
	for range 50 {
		key := crand.Text()
		begun, longest := time.Now(), time.Duration(0)
		var all sync.WaitGroup
		for i := range 16 {
			d := time.Duration(1+rand.IntN(40)) * time.Second
			longest = max(longest, d)
			all.Go(func() {
				if err := stores[i%4].prolong(context.WithoutCancel(t.Context()), key, d); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		left, err := stores[0].left(t.Context(), key)
		if late := time.Since(begun); err != nil || left > longest+late || left < longest-late {
			t.Fatalf("%s are left of %s after at most %s, %v", left, longest, late, err)
		}
	}
}

// slowStore takes up to 5 ms each way.
type slowStore struct{ headgate.Store }

func (s slowStore) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
	defer func() { time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) }()
	return s.Store.Take(ctx, r)
}

// Whatever a fleet is asked for, and when, across a slow network: a pause is never shorter
// than the longest that was asked for, and longer by some round trips. That it is longer than
// that takes three who ask within one round trip, and a fourth later: see ARCHITECTURE.md.
func TestPausesOfAFleet(t *testing.T) {
	const rounds, asks = 50, 800
	longer := 0
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			store := headgate.NewMemory(10)
			var mu sync.Mutex
			var end time.Time // the latest that was asked for
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range asks / 8 {
						time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
						d := time.Duration(1+rand.IntN(3)) * time.Second
						own := time.Now().Add(d)
						mu.Lock()
						if own.After(end) {
							end = own
						}
						mu.Unlock()
						ask(t, pauses{slowStore{store}}, d)
						left, err := pauses{store}.left(t.Context(), "k")
						mu.Lock()
						if left-max(time.Until(end), 0) > 30*time.Millisecond {
							longer++
						}
						mu.Unlock()
						if err != nil || left < time.Until(own)-time.Microsecond {
							t.Errorf("%s are left of %s, %v", left, time.Until(own), err)
						}
					}
				})
			}
			all.Wait()
		})
	}
	if longer > rounds*asks/1000 {
		t.Errorf("%d of %d pauses were longer", longer, rounds*asks)
	}
}
