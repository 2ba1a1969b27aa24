package headgate

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that wait keep their places when SetLimits changes their limits, or sets the same again.
func TestSetLimitsKeepsTheOrder(t *testing.T) {
	for _, next := range []Limit{PerSecond(1), PerSecond(2).Burst(1)} {
		for _, trip := range []time.Duration{0, 2 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				l := must(NewLimiter(&networkStore{Store: NewMemory(), there: trip / 2,
					back: trip / 2}, PerSecond(1)))
				passed := make(chan string, 9)
				wait := func(name string) {
					go func() {
						if err := l.Wait(t.Context(), "k"); err != nil {
							t.Error(err)
						}
						passed <- name
					}()
					synctest.Wait()
				}
				for i := range 8 {
					wait(fmt.Sprint("old ", i))
				}
				if err := l.SetLimits(next); err != nil {
					t.Error(err)
				}
				wait("young")
				time.Sleep(20 * time.Second)
				synctest.Wait()
				close(passed)
				if names := slices.Collect(all(passed)); !slices.IsSorted(names) ||
					len(names) != 9 {
					t.Errorf("%v, %s away: %q", next, trip, names)
				}
			})
		}
	}
}

func all(c <-chan string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s := range c {
			if !yield(s) {
				return
			}
		}
	}
}
