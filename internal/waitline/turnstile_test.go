package waitline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnstileLetsCallersActInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Turnstile
		var acted []int
		for i := range 5 {
			go func() {
				if err := line.Enter(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				acted = append(acted, i)
				line.Leave()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(acted, []int{0, 1, 2, 3, 4}) {
			t.Errorf("acted: %v; want 0 to 4", acted)
		}
	})
}

func TestTurnstileLetsACallerWhoseContextEndsLeaveTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Turnstile
		if err := line.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left, next := make(chan error, 1), make(chan error, 1)
		go func() { left <- line.Enter(ctx) }()
		synctest.Wait()
		go func() { next <- line.Enter(t.Context()) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
		if err := line.Enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("entering with a context that has ended: %v", err)
		}
		synctest.Wait()
		if len(next) != 0 {
			t.Fatal("the third is first while the first acts")
		}
		line.Leave()
		if err := <-next; err != nil {
			t.Error(err)
		}
		line.Leave()
		if err := line.Enter(t.Context()); err != nil { // the line is empty again
			t.Error(err)
		}
	})
}

// TestTurnstilePassesOnWhatComesToACallerWhoseContextEnds ends a context and lets its caller
// become the first at the same moment, whichever it notices.
func TestTurnstilePassesOnWhatComesToACallerWhoseContextEnds(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var line Turnstile
			if err := line.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if line.Enter(ctx) == nil {
					line.Leave()
				}
			}()
			synctest.Wait()
			last := make(chan error, 1)
			go func() { last <- line.Enter(t.Context()) }()
			synctest.Wait()
			go line.Leave()
			cancel()
			synctest.Wait()
			if len(last) == 0 {
				t.Fatal("the last never became the first")
			}
		})
	}
}
