package pause

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

func inSeconds(n int) time.Duration { return time.Duration(n) * time.Second }

// ask extends a pause and says what is left of it then.
func ask(t *testing.T, p Store, d time.Duration) time.Duration {
	t.Helper()
	if err := p.Extend(t.Context(), "k", d); err != nil {
		t.Fatal(err)
	}
	left, err := p.Left(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A pause lasts until the latest of the ends that were asked for, and passes by itself.
func TestPausesDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Store{headgate.NewMemorySize(10)}
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

// Pauses that are asked for at the same time do not add up: one of their ends remains.
func TestPausesAtTheSameTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			p := Store{headgate.NewMemorySize(10)}
			var all sync.WaitGroup
			shortest, longest := time.Hour, time.Duration(0)
			for range 16 {
				d := time.Duration(1+random.IntN(40)) * time.Second
				shortest, longest = min(shortest, d), max(longest, d)
				all.Go(func() {
					if err := p.Extend(t.Context(), "k", d); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			left, err := p.Left(t.Context(), "k")
			if left = left.Round(time.Millisecond); err != nil || left < shortest || left > longest {
				t.Fatalf("%s are left of %s to %s (%v)", left, shortest, longest, err)
			}
		}
	})
}

// openStores opens a server as several processes do.
func openStores(t *testing.T, server *redistest.Server, n int) []Store {
	t.Helper()
	var stores []Store
	for range n {
		store, err := redisstore.Open(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		stores = append(stores, Store{store})
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

// Pauses that are recorded within one round trip do not add up, and one of them remains.
func TestPausesAtTheSameTimeInRedis(t *testing.T) {
	server := redistest.Start(t)
	stores := openStores(t, server, 4)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		key := strconv.Itoa(i)
		begun, shortest, longest := time.Now(), time.Minute, time.Duration(0)
		var all sync.WaitGroup
		for i := range 16 {
			d := time.Duration(1+random.IntN(40)) * time.Second
			shortest, longest = min(shortest, d), max(longest, d)
			all.Go(func() {
				if err := stores[i%4].Extend(t.Context(), key, d); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		left, err := stores[0].Left(t.Context(), key)
		late := time.Since(begun)
		if err != nil || left > longest+late || left < shortest-late {
			t.Fatalf("%s are left of %s to %s after at most %s, %v", left, shortest, longest, late, err)
		}
	}
}

// slowStore takes up to 5 ms each way.
type slowStore struct {
	headgate.Store

	random *rand.Rand
}

func (s slowStore) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(time.Duration(s.random.IntN(5000)) * time.Microsecond)
	defer func() { time.Sleep(time.Duration(s.random.IntN(5000)) * time.Microsecond) }()
	return s.Store.Take(ctx, r)
}

// Eight processes across a slow network are asked for pauses all the time. Nearly always, the
// shared pause is the longest that was asked for.
func TestPausesOfAFleet(t *testing.T) {
	const pausesEach = 2000
	wrong := 0
	synctest.Test(t, func(t *testing.T) {
		store := headgate.NewMemorySize(10)
		var mu sync.Mutex
		var end time.Time // the latest that was asked for
		var all sync.WaitGroup
		for i := range uint64(8) {
			random := rand.New(rand.NewPCG(3, i))
			all.Go(func() {
				for range pausesEach {
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
					d := time.Duration(1+random.IntN(3)) * time.Second
					own := time.Now().Add(d)
					mu.Lock()
					if own.After(end) {
						end = own
					}
					mu.Unlock()
					ask(t, Store{slowStore{store, random}}, d)
					left, err := Store{store}.Left(t.Context(), "k")
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					if left < time.Until(own)-time.Millisecond || left > time.Until(end)+30*time.Millisecond {
						wrong++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
	})
	if wrong > 8*pausesEach/100 {
		t.Errorf("%d of %d pauses were wrong", wrong, 8*pausesEach)
	}
}
