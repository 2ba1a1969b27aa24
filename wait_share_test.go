package headgate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// countingStore counts the requests that are sent.
type countingStore struct {
	Store
	n *atomic.Int64
}

func (s countingStore) Take(ctx context.Context, r Request) (Decision, error) {
	s.n.Add(1)
	return s.Store.Take(ctx, r)
}

// crowd has 200 callers in each of several processes wait all the time for a limit of so many
// tokens a second, each for the next of the costs. It returns the tokens of each process, the
// seconds and the calls of the store. A trip takes always as long, or on average if it varies.
func crowd(processes int, trip time.Duration, varies bool, rate int64, costs ...int64) (
	tokens []int64, seconds float64, calls int64,
) {
	span := time.Duration(1000/rate+20) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	tokens = make([]int64, processes)
	var all sync.WaitGroup
	var n atomic.Int64
	m := NewMemorySize(1000)
	for p := range tokens {
		store := &networkStore{Store: m, there: trip / 2, back: trip / 2}
		if varies { // a tenth
			random := rand.New(rand.NewPCG(1, uint64(p)))
			store.Store = &networkStore{Store: m, there: trip / 20, back: trip / 20, random: random}
			store.there, store.back = trip*9/20, trip*9/20
		}
		l := must(NewLimiter(countingStore{store, &n}, PerSecond(rate).Burst(costs[len(costs)-1])))
		for i := range 200 {
			cost := costs[i%len(costs)]
			all.Go(func() {
				for l.WaitN(ctx, "k", cost) == nil {
					atomic.AddInt64(&tokens[p], cost)
				}
			})
		}
	}
	all.Wait()
	calls = n.Load()
	time.Sleep(time.Second) // for answers that come late
	return tokens, span.Seconds(), calls
}

// A process gets the whole rate, however long trips take. Processes share it in equal parts.
func TestProcessesShareTheRate(t *testing.T) {
	for _, trip := range []time.Duration{0, 300 * time.Microsecond, 2400 * time.Microsecond,
		50 * time.Millisecond} {
		for _, varies := range []bool{false, true} {
			for _, rate := range []int64{10, 1000} {
				for _, processes := range []int{1, 2, 4} {
					if varies && trip == 0 || processes == 4 && (testing.Short() || rate > 10) {
						continue
					}
					name := fmt.Sprintf("%s/%t/%d/%d", trip, varies, rate, processes)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							sharesTheRate(
								t, processes, trip, varies, rate)
						})
					})
				}
			}
		}
	}
}

func sharesTheRate(t *testing.T, processes int, trip time.Duration, varies bool, rate int64) {
	tokens, seconds, calls := crowd(processes, trip, varies, rate, 1)
	sum := int64(0)
	for _, n := range tokens {
		sum += n
	}
	t.Logf("%d of %g, %d, %.1f calls for each", sum, seconds*float64(rate), tokens,
		float64(calls)/float64(sum))
	if part := float64(sum) / seconds / float64(rate); part < 0.98 || part > 1.01 {
		t.Errorf("%.3f of the rate", part)
	}
	if calls > 17*sum {
		t.Errorf("%d calls for %d tokens", calls, sum)
	}
	for p, n := range tokens {
		if even := float64(sum) / float64(processes); float64(n) < 0.95*even ||
			float64(n) > 1.05*even {
			t.Errorf("process %d has %d of %d tokens", p, n, sum)
		}
	}
}

// Callers with different costs get the whole rate where a trip takes no longer than a caller needs.
func TestDifferentCostsGetTheWholeRate(t *testing.T) {
	for _, trip := range []time.Duration{0, 2 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			tokens, seconds, _ := crowd(1, trip, false, 500, 1, 2, 1, 5)
			if part := float64(tokens[0]) / seconds / 500; part < 0.98 {
				t.Errorf("trips of %s: %.3f of the rate", trip, part)
			}
		})
	}
}
