package waitline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnstilesLetCallersActInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Turnstiles
		var acted []int
		for i := range 5 {
			go func() {
				_, leave, err := line.Enter(t.Context(), "k")
				if err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				acted = append(acted, i)
				leave()
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

func TestTurnstilesLetACallerWhoseContextEndsLeaveTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line Turnstiles
		_, leave, err := line.Enter(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left, next := make(chan error, 1), make(chan func(), 1)
		go func() {
			_, _, err := line.Enter(ctx, "k")
			left <- err
		}()
		synctest.Wait()
		go func() {
			_, leave, err := line.Enter(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			next <- leave
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
		if n := line.Callers("k"); n != 2 {
			t.Errorf("%d callers when one of three has left", n)
		}
		if _, _, err := line.Enter(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("entering with a context that has ended: %v", err)
		}
		synctest.Wait()
		if len(next) != 0 {
			t.Fatal("the third is first while the first acts")
		}
		leave()
		(<-next)()
		if n := line.Callers("k"); n != 0 {
			t.Errorf("%d callers are left", n)
		}
		if _, _, err := line.Enter(t.Context(), "k"); err != nil { // the line is empty again
			t.Error(err)
		}
	})
}

// TestTurnstilesPassOnWhatComesToACallerWhoseContextEnds ends a context and lets its caller
// become the first at the same moment, whichever it notices.
func TestTurnstilesPassOnWhatComesToACallerWhoseContextEnds(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var line Turnstiles
			_, leave, err := line.Enter(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if _, leave, err := line.Enter(ctx, "k"); err == nil {
					leave()
				}
			}()
			synctest.Wait()
			last := make(chan error, 1)
			go func() {
				_, _, err := line.Enter(t.Context(), "k")
				last <- err
			}()
			synctest.Wait()
			go leave()
			cancel()
			synctest.Wait()
			if len(last) == 0 {
				t.Fatal("the last never became the first")
			}
		})
	}
}

// TestTurnstilesWatchAKeyWhileItHasCallers has callers of two keys, which do not wait for each
// other.
func TestTurnstilesWatchAKeyWhileItHasCallers(t *testing.T) {
	var watched []string
	lines := Turnstiles{Watch: func(key string, wake chan<- struct{}) func() {
		watched = append(watched, key)
		wake <- struct{}{}
		return func() { watched = append(watched, "stop "+key) }
	}}
	leaves := map[string]func(){}
	for _, key := range []string{"a", "b"} {
		wake, leave, err := lines.Enter(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		<-wake
		leaves[key] = leave
	}
	leaves["b"]()
	if a, b := lines.Callers("a"), lines.Callers("b"); a != 1 || b != 0 {
		t.Errorf("%d callers of a, %d of b; want 1 and 0", a, b)
	}
	leaves["a"]()
	if want := []string{"a", "b", "stop b", "stop a"}; !slices.Equal(watched, want) {
		t.Errorf("watched: %v; want %v", watched, want)
	}
}
