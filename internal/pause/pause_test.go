package pause

import (
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
			if got := ask(t, p,
				inSeconds(step.asked)).Round(time.Millisecond); got != inSeconds(step.want) {
				t.Errorf("%+v: %s are left", step, got)
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
			t.Fatalf("%s are left of %s to %s after at most %s, %v", left, shortest, longest, late,
				err)
		}
	}
}
