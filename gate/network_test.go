package gate

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// An api takes at most 10 requests in any second, by when they arrive.
type api struct {
	mu       sync.Mutex
	delay    func(request int) time.Duration // from the caller to the API
	arrivals []time.Time
}

const (
	apiLimit  = 10
	apiPeriod = time.Second
	apiDelay  = 30 * time.Millisecond // the largest
)

func (a *api) call() {
	a.mu.Lock()
	delay := a.delay(len(a.arrivals))
	i := len(a.arrivals)
	a.arrivals = append(a.arrivals, time.Time{})
	a.mu.Unlock()
	time.Sleep(delay)
	a.mu.Lock()
	a.arrivals[i] = time.Now()
	a.mu.Unlock()
	time.Sleep(apiDelay - delay) // the response
}

// most is the largest number of arrivals in a period, wherever it begins.
func (a *api) most() (n int) {
	slices.SortFunc(a.arrivals, time.Time.Compare)
	first := 0
	for last, at := range a.arrivals {
		for at.Sub(a.arrivals[first]) >= apiPeriod {
			first++
		}
		n = max(n, last-first+1)
	}
	return n
}

// calls makes calls by 24 callers for 12 periods. A caller begins a call with wait, and ends it
// with the function that wait returns.
func (a *api) calls(t *testing.T, wait func(context.Context) (func(), error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*apiPeriod)
	defer cancel()
	var callers sync.WaitGroup
	for range 24 {
		callers.Go(func() {
			for {
				done, err := wait(ctx)
				if err != nil {
					return
				}
				a.call()
				done()
			}
		})
	}
	callers.Wait()
}

// byTurns delays ten requests, and then ten not.
func byTurns(request int) time.Duration { return time.Duration((request/apiLimit+1)%2) * apiDelay }

func atRandom() func(int) time.Duration {
	r := rand.New(rand.NewPCG(1, 1))
	return func(int) time.Duration { return time.Duration(r.Int64N(int64(apiDelay))) }
}

// What docs/waiting.md says about an API that counts requests as they arrive.
func TestArrivalsBehindANetwork(t *testing.T) {
	const longer = apiPeriod + 2*apiDelay
	gated := func(period time.Duration) func() Waiter {
		return func() Waiter { return must(New(apiLimit, period)) }
	}
	shared := func(period time.Duration) func() Waiter {
		return func() Waiter {
			return must(NewShared(concurrency.NewMemory(), "api", apiLimit, period))
		}
	}
	bucket := func(l headgate.Limit) func() Waiter {
		return func() Waiter {
			return NewKeyWaiter(
				must(headgate.NewLimiter(headgate.NewMemory(), l)), "api")
		}
	}
	for _, test := range []struct {
		name    string
		waiter  func() Waiter
		atMost  int // of random delays and of delays by turns
		atLeast int // of delays by turns
	}{
		{"gate, the period of the API", gated(apiPeriod), 2 * apiLimit, 2 * apiLimit},
		{"shared gate, the period of the API", shared(apiPeriod), 2 * apiLimit, 2 * apiLimit},
		{"gate, a longer period", gated(longer), apiLimit, apiLimit},
		{"shared gate, a longer period", shared(longer), apiLimit, apiLimit},
		{"burst 1, the rate of the API", bucket(headgate.PerSecond(10).Burst(1)), 11, 11},
		{"burst 1, a longer period", bucket(headgate.Per(10, longer).Burst(1)), apiLimit, apiLimit},
	} {
		for _, delay := range []func(int) time.Duration{byTurns, atRandom()} {
			synctest.Test(t, func(t *testing.T) {
				w, a := test.waiter(), &api{delay: delay}
				a.calls(t, func(ctx context.Context) (func(), error) {
					return func() {}, w.WaitN(ctx, 1)
				})
				if most := a.most(); most > test.atMost || delay(0) == apiDelay &&
					most < test.atLeast {
					t.Errorf("%s: %d in a period, want %d to %d", test.name, most, test.atLeast,
						test.atMost)
				}
			})
		}
	}
}
