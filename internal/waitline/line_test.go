package waitline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// perSecond is the limit that denies: a token a second, and 5 at once.
var perSecond = algorithm.NewRule(algorithm.Terms{
	Algorithm: algorithm.TokenBucket, Capacity: 5, Refill: 1, Every: time.Second}, "1/s")

// script is a store that is a trip of 10 ms away and answers what the test says.
type script struct {
	mu       sync.Mutex
	asked    []time.Duration // the maxWait of each call
	canceled int
	answer   func(call int, maxWait time.Duration) (Answer, error)
}

func (s *script) Ask(maxWait time.Duration) (Answer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, maxWait)
	call := len(s.asked)
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return s.answer(call, maxWait)
}

func (s *script) Cancel(Start) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canceled++
	return nil
}

func (s *script) Inline() bool { return false }

func (s *script) Late(_ *algorithm.Rule, wait time.Duration) error {
	return fmt.Errorf("late by %s", wait.Round(time.Millisecond))
}

func (s *script) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func granted(wait time.Duration) Answer {
	return Answer{Granted: true, Wait: wait, Limit: perSecond,
		Start: Start{At: time.Now().Add(wait)}}
}

func denied(wait time.Duration) Answer { return Answer{Wait: wait, Limit: perSecond} }

// inLine runs test with a function that waits in a line, and checks that nobody is left in it.
func inLine(t *testing.T, s *script,
	test func(t *testing.T, wait func(ctx context.Context, n int64) error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var lines Lines[string]
		test(t, func(ctx context.Context, n int64) error {
			by, _ := ctx.Deadline()
			_, err := lines.Wait(ctx, "k", n, 5, by, s)
			return err
		})
		time.Sleep(time.Hour)
		if lines.Any() || lines.Has("k") {
			t.Error("a line is left")
		}
	})
}

// Callers behind the head have nothing in the store, and the head asks once before its time.
func TestCallersThatLeaveTheLineDidNotAsk(t *testing.T) {
	s := &script{}
	s.answer = func(call int, _ time.Duration) (Answer, error) {
		if call == 1 {
			return denied(time.Minute), nil
		}
		return granted(0), nil
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		start := time.Now()
		go func() {
			if err := wait(t.Context(), 1); err != nil ||
				time.Since(start).Round(time.Second) != time.Minute {
				t.Errorf("the head passed after %s, %v", time.Since(start), err)
			}
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		ctx = context.WithoutCancel(ctx) // which has no deadline
		leaves, leave := context.WithCancel(ctx)
		time.AfterFunc(time.Second, leave)
		for range 100 {
			go func() {
				if err := wait(leaves, 1); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
		}
		cancel()
		time.Sleep(2 * time.Minute)
		if n := s.calls(); n != 2 {
			t.Errorf("the store was asked %d times; want 2", n)
		}
	})
}

// A start whose caller has left goes to the next one that needs as many tokens, or is cancelled.
func TestTheStartOfACallerThatLeaves(t *testing.T) {
	for _, c := range []struct {
		needs    int64         // of the caller behind
		passes   time.Duration // when it does
		canceled int
	}{{1, time.Second, 0}, {2, 2 * time.Second, 1}} {
		s := &script{}
		s.answer = func(call int, _ time.Duration) (Answer, error) {
			if call == 1 {
				return granted(990 * time.Millisecond), nil
			}
			return granted(time.Duration(call)*time.Second - 500*time.Millisecond), nil
		}
		inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
			start := time.Now()
			leaves, leave := context.WithCancel(t.Context())
			go func() { _ = wait(leaves, 1) }()
			time.Sleep(20 * time.Millisecond)
			go func() {
				if err := wait(t.Context(), c.needs); err != nil ||
					time.Since(start).Round(time.Second) != c.passes {
					t.Errorf("the next of %d passed after %s, %v; want %s", c.needs,
						time.Since(start), err, c.passes)
				}
			}()
			time.Sleep(time.Millisecond)
			leave()
			time.Sleep(time.Minute)
			synctest.Wait()
			if s.canceled != c.canceled {
				t.Errorf("%d cancels; want %d", s.canceled, c.canceled)
			}
		})
	}
}

// A caller gets its error when it is certain that it is too late: when it comes, or when the head
// is denied.
func TestDeadlinesThatCannotBeMet(t *testing.T) {
	s := &script{}
	s.answer = func(call int, _ time.Duration) (Answer, error) {
		switch call {
		case 1:
			return denied(10 * time.Second), nil // 11 s after the start
		case 2:
			return denied(20 * time.Second), nil // others came
		default:
			return granted(0), nil
		}
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		start := time.Now()
		late := func(by time.Duration, n int64, want string, after time.Duration) {
			t.Helper()
			ctx, cancel := context.WithDeadline(t.Context(), start.Add(by))
			defer cancel()
			err := wait(ctx, n)
			if took := time.Since(start).Round(time.Second); fmt.Sprint(err) != want ||
				took != after {
				t.Errorf("a deadline after %s, and %d tokens: %v after %s; want %q after %s", by,
					n, err, took, want, after)
			}
		}
		go func() { _ = wait(t.Context(), 2) }()
		time.Sleep(time.Second)
		late(14*time.Second, 5, "late by 14.01s",
			time.Second) // 2 pass after 10 s, and 5 more take 5 s
		done := make(chan struct{})
		go func() {
			defer close(done)
			late(20*time.Second, 1, "late by 21s", 10*time.Second)
		}()
		<-done
	})
}

// deadline is a context that says when it ends, and does not.
type deadline struct {
	context.Context //nolint:containedctx // it is a context

	by time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.by, true }

// A start after the deadline of the first caller stays with the one that asked for it, and the
// first is refused at once.
func TestAStartAfterADeadline(t *testing.T) {
	s := &script{}
	s.answer = func(call int, _ time.Duration) (Answer, error) {
		if call == 2 {
			return granted(2 * time.Second), nil
		}
		return denied(10 * time.Second), nil
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		start := time.Now()
		go func() {
			err := wait(deadline{t.Context(), start.Add(time.Second)}, 1)
			if took := time.Since(start); err == nil || took > time.Second {
				t.Errorf("the first waited for %s, %v; its deadline was after 1s", took, err)
			}
		}()
		time.Sleep(time.Millisecond)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, leave)
		err := wait(ctx, 1)
		if took := time.Since(start).Round(time.Second); err != nil || took != 2*time.Second {
			t.Errorf("the second passed after %s, %v", took, err)
		}
	})
}

// With each denial a caller may book farther ahead, and after sixteen however far.
func TestDenialsLetACallerBookFartherAhead(t *testing.T) {
	s := &script{}
	s.answer = func(_ int, maxWait time.Duration) (Answer, error) {
		if maxWait < time.Minute {
			return denied(time.Minute), nil
		}
		return granted(time.Minute), nil
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		if err := wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if len(s.asked) != 17 || s.asked[0] != 0 || s.asked[16] != math.MaxInt64 ||
			!slices.IsSorted(s.asked) {
			t.Errorf("asked for %v", s.asked)
		}
	})
}

// An error of the store ends the caller that asked. If the next call fails as well, all end.
func TestErrorsOfTheStore(t *testing.T) {
	gone := errors.New("gone")
	s := &script{}
	s.answer = func(call int, _ time.Duration) (Answer, error) {
		if call == 1 {
			return denied(time.Second), nil
		}
		return Answer{}, gone
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond * 200)
				if err := wait(t.Context(), 1); !errors.Is(err, gone) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.calls(); n > 60 { // those that came before the first denial asked at once
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// A panic of the store is raised in the caller that asked, and the line goes on.
func TestAPanicOfTheStore(t *testing.T) {
	s := &script{}
	s.answer = func(call int, _ time.Duration) (Answer, error) {
		if call == 1 {
			panic("mine")
		}
		return granted(0), nil
	}
	inLine(t, s, func(t *testing.T, wait func(context.Context, int64) error) {
		go func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the panic was lost")
				}
			}()
			_ = wait(t.Context(), 1)
		}()
		time.Sleep(time.Millisecond)
		if err := wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
	})
}
