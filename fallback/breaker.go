package fallback

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/sony/gobreaker/v2"
)

// newBreaker makes the breaker through which s asks its store.
func newBreaker(s *Store) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	most := uint32(min(s.options.Failures, 1<<30))
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     10 * time.Second,
		BucketPeriod: time.Second,
		Timeout:      s.options.Pause,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= most || c.TotalFailures >= most && c.TotalFailures >= c.TotalSuccesses
		},
		IsExcluded:    func(err error) bool { return err != nil && uncounted(err) },
		OnStateChange: func(_ string, from, to gobreaker.State) { s.changes.note(from, to, s.options.Pause) },
	})
}

// ask calls the store within the budget, unless it is left alone. A final error is for the caller;
// any other says that the store could not say.
func (s *Store) ask(ctx context.Context, call func(context.Context) error) error {
	if s.store == nil {
		return &headgate.InvalidError{Field: "fallback.Store", Value: "a zero value", Want: "one made by fallback.New"}
	}
	err := s.askWatched(ctx, call)
	s.changes.tell(s.options.OnChange)
	return err
}

// askWatched lets the breaker watch one call at a time, and others go beside it. So it counts
// what one caller would see who asks again and again, however many wait for the same late answer.
func (s *Store) askWatched(ctx context.Context, call func(context.Context) error) error {
	if !s.watched.CompareAndSwap(false, true) {
		if s.breaker.State() != gobreaker.StateClosed {
			return s.changes.cause()
		}
		return s.call(ctx, call)
	}
	defer s.watched.Store(false)
	done, err := s.breaker.Allow()
	if err != nil { // the breaker is open
		return s.changes.cause()
	}
	ended := false
	defer func() {
		if !ended { // the store panicked, or ended the goroutine
			err = errEnded
			s.changes.fail(err)
		}
		done(err)
	}()
	err = s.silence(s.call(ctx, call))
	ended = true
	return err
}

var errEnded = errors.New("the store ended its caller")

// call calls the store within the budget.
func (s *Store) call(ctx context.Context, call func(context.Context) error) error {
	begun := time.Now()
	within, stop := context.WithDeadline(ctx, begun.Add(s.options.Timeout))
	defer stop()
	err := call(within)
	if err == nil {
		if !s.answered.Load() {
			s.answered.Store(true)
		}
		return nil
	}
	if left := ctx.Err(); left != nil {
		return &leftError{error: left, after: time.Since(begun)}
	}
	s.changes.fail(err)
	return err
}

// silence adds up for how long those waited whom the breaker watched and who left, while nobody had
// an answer. A budget of that is a failure.
func (s *Store) silence(err error) error {
	left, is := errors.AsType[*leftError](err)
	if s.answered.Swap(false) || !is && !uncounted(err) {
		s.silent = 0
		return err
	}
	if is {
		s.silent += left.after
		if left.silence = s.silent >= s.options.Timeout; left.silence {
			s.silent = 0
			s.changes.fail(errNoAnswer)
		}
	}
	return err
}

var errNoAnswer = errors.New("the store gave no answer")

// leftError is that of a caller whose own context ended.
type leftError struct {
	error

	after   time.Duration // for which he waited
	silence bool          // which with those before was too long
}

func (e *leftError) Unwrap() error { return e.error }

// final says whether err is what the caller is told: the input is wrong, or he has left.
func final(err error) bool {
	if _, left := errors.AsType[*leftError](err); left {
		return true
	}
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	return invalid
}

// uncounted says whether err says nothing of the store: the input is wrong, the caller has left in time, or he
// was turned away on this side because too many wait.
func uncounted(err error) bool {
	if left, is := errors.AsType[*leftError](err); is {
		return !left.silence
	}
	busy, is := errors.AsType[interface {
		error
		Busy() bool
	}](err)
	return is && busy.Busy() || final(err)
}

// Stats are the counts of a [Store] since it was made, for observers.
type Stats struct {
	Degraded    bool          // the store is left alone: the breaker is open
	DegradedFor time.Duration // for how long it was, in all
	Instead     uint64        // decisions that were not the store's, also while it was asked
	Failures    uint64        // calls to which the store gave no answer, each of them; to be turned away as by redisstore.ErrBusy is none
}

// Stats are the counts up to now.
func (s *Store) Stats() Stats {
	stats := s.changes.stats()
	stats.Instead = s.instead.Load()
	return stats
}

// changes are what became of the store: how often it failed, and when it was left alone.
type changes struct {
	mu       sync.Mutex
	last     error // why the store could not say
	failures uint64
	since    time.Time // when it was left alone; zero while it is asked
	before   time.Duration
	next     time.Time // when it is asked again
	untold   []change
	telling  bool
}

type change struct {
	degraded bool
	err      error
}

// fail notes that a call failed.
func (c *changes) fail(err error) {
	if uncounted(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.last = err
}

// note notes a change of the breaker. Half open it is left alone still, but for one caller.
func (c *changes) note(from, to gobreaker.State, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch to {
	case gobreaker.StateHalfOpen:
	case gobreaker.StateClosed:
		c.before += now.Sub(c.since)
		c.since = time.Time{}
		c.untold = append(c.untold, change{})
	case gobreaker.StateOpen:
		c.next = now.Add(pause + time.Microsecond) // the breaker lets nobody through at the very end of its pause
		if from == gobreaker.StateClosed {
			c.since = now
			c.untold = append(c.untold, change{degraded: true, err: c.last})
		}
	}
}

// tell tells an observer of the changes that nobody was told of, outside of the lock. It is told
// of one after the other, by whoever is telling already.
func (c *changes) tell(observer func(degraded bool, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.untold) > 0 && !c.telling {
		next := c.untold[0]
		c.untold = c.untold[1:]
		if observer != nil {
			c.tellOne(observer, next)
		}
	}
}

// tellOne tells of one change, and lets others tell the next, also if the observer panics.
func (c *changes) tellOne(observer func(degraded bool, err error), next change) {
	c.telling = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.telling = false
	}()
	observer(next.degraded, next.err)
}

// wait is the time until the store is asked again.
func (c *changes) wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.next)
}

// cause is why the store is left alone.
func (c *changes) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil { // it panicked
		return errNoAnswer
	}
	return c.last
}

func (c *changes) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := Stats{DegradedFor: c.before, Failures: c.failures}
	if !c.since.IsZero() {
		stats.Degraded = true
		stats.DegradedFor += time.Since(c.since)
	}
	return stats
}
