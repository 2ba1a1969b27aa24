package headgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// load is callers of several processes that share one key at 10 tokens a second, and leave after a
// patience that the limiter cannot know.
type load struct {
	processes   int
	least, most time.Duration // of the patience
	demand      float64       // tokens a second, of all together
	costs       []int64
	limits      []Limit
}

func (l load) String() string {
	return fmt.Sprintf("%s/%d processes, patience %s to %s, demand %g, costs %d",
		strings.Trim(fmt.Sprint(l.limits), "[]"), l.processes, l.least, l.most, l.demand, l.costs)
}

// loads are those of the simulation from which the way of waiting was chosen.
func loads(burst func(int64) []Limit) (all []load) {
	for _, processes := range []int{1, 4, 16, 64} {
		for _, patience := range [][2]int{{5, 10}, {200, 500}, {1000, 2000}, {5000, 10000}} {
			for _, demand := range []float64{8, 20, 50} {
				for _, costs := range [][]int64{{1}, {1, 1, 1, 5}} {
					b := int64(1)
					if len(costs) > 1 {
						b = 10
					}
					all = append(all, load{processes, time.Duration(patience[0]) * time.Millisecond,
						time.Duration(patience[1]) * time.Millisecond, demand, costs, burst(b)})
				}
			}
		}
	}
	return all
}

// serve lets the callers of l come for some time, and returns how many tokens were granted to
// callers that were still there. With deadlines, callers say how long they stay.
func (l load) serve(t *testing.T, span time.Duration, deadlines bool) (served int64) {
	t.Helper()
	store := NewMemorySize(1000)
	mean := 0.
	for _, n := range l.costs {
		mean += float64(n) / float64(len(l.costs))
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for p := range l.processes {
		random := rand.New(rand.NewPCG(1, uint64(p)))
		limiter := must(NewLimiter(store, l.limits...))
		all.Go(func() {
			end := time.Now().Add(span)
			for {
				time.Sleep(time.Duration(random.ExpFloat64() * mean * float64(l.processes) / l.demand * float64(time.Second)))
				if !time.Now().Before(end) {
					return
				}
				n := l.costs[random.IntN(len(l.costs))]
				patience := l.least + time.Duration(random.Int64N(int64(l.most-l.least)))
				ctx, cancel := context.WithCancel(context.Background())
				if deadlines {
					ctx, cancel = context.WithTimeout(context.Background(), patience)
				} else {
					time.AfterFunc(patience, cancel)
				}
				all.Go(func() {
					defer cancel()
					err := limiter.WaitN(ctx, "k", n)
					mu.Lock()
					defer mu.Unlock()
					if err == nil && time.Now().Before(end) {
						served += n
					} else if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
		})
	}
	all.Wait()
	return served
}

func TestCallersThatLeaveCostNobody(t *testing.T) {
	span := time.Minute
	for _, l := range loads(func(burst int64) []Limit { return []Limit{PerSecond(10).Burst(burst)} }) {
		t.Run(l.String(), func(t *testing.T) {
			var left, stayed int64
			synctest.Test(t, func(t *testing.T) { left = l.serve(t, span, false) })
			synctest.Test(t, func(t *testing.T) { stayed = l.serve(t, span, true) })
			t.Logf("%d, with deadlines %d: %.2f", left, stayed, float64(left)/float64(stayed))
			if float64(left) < 0.95*float64(stayed) {
				t.Errorf("%d served; with deadlines %d", left, stayed)
			}
		})
	}
}
