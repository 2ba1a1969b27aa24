package headgate

import (
	"context"
	"iter"
	"runtime"
	"strconv"
	"sync"
)

// Throttle passes on the elements of seq, each when its turn has come at w: the loop
// body runs at the pace of w.
//
//	urls, stopped := headgate.Throttle(ctx, gate, slices.Values(all))
//	for url := range urls {
//		fetch(url)
//	}
//	if err := stopped(); err != nil {
//		return err // not all were fetched
//	}
//
// The sequence ends early when waiting fails: ctx has ended, or w was closed.
// The element that was waiting then is not passed on. So that an early end is not
// mistaken for the end of seq, stopped tells it: it returns the error of w if the latest
// loop was ended by one, and otherwise, also while it runs or after a break, nil. If w is
// nil, nothing is passed on, and stopped returns an [InvalidError].
//
// Each element is fetched before its turn is waited for, so that it is worked on
// just when that has come, and the end of seq costs no turn.
func Throttle[V any](ctx context.Context, w Waiter, seq iter.Seq[V]) (throttled iter.Seq[V], stopped func() error) {
	var end ending
	return func(yield func(V) bool) {
		if end.set(missing(w)); w == nil {
			return
		}
		for v := range seq {
			if err := w.WaitN(ctx, 1); err != nil {
				end.set(err)
				return
			}
			if !yield(v) {
				return
			}
		}
	}, end.get
}

// Throttle2 is [Throttle] for sequences of pairs.
func Throttle2[K, V any](ctx context.Context, w Waiter, seq iter.Seq2[K, V]) (throttled iter.Seq2[K, V], stopped func() error) {
	var end ending
	return func(yield func(K, V) bool) {
		if end.set(missing(w)); w == nil {
			return
		}
		for k, v := range seq {
			if err := w.WaitN(ctx, 1); err != nil {
				end.set(err)
				return
			}
			if !yield(k, v) {
				return
			}
		}
	}, end.get
}

// missing is the error for a Waiter that is nil.
func missing(w Waiter) error {
	if w == nil {
		return &InvalidError{"waiter", "nil", "a Gate, a SharedGate or the Waiter of a Limiter"}
	}
	return nil
}

// ending is why a loop ended.
type ending struct {
	mu  sync.Mutex
	err error
}

func (e *ending) set(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func (e *ending) get() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// ForEach calls do for every element of seq, up to parallel at a time, each when its
// turn has come at w. A call has its element before it waits, so w paces the calls
// themselves, whatever it takes to fetch an element.
//
// It stops at the first error, of do or of waiting: the context of the calls that run is
// cancelled, none is begun any more, and when those that run have returned, ForEach
// returns that error. A panic in do or seq stops it in the same way, and goes on in
// the caller of ForEach, as does [runtime.Goexit]. seq is read by the caller's
// goroutine, at most one element ahead. With parallel 1, calls come in the order of seq.
//
// If ctx ends, it returns why ([context.Cause]). It returns an [InvalidError] if parallel is
// less than 1 or w is nil.
func ForEach[V any](ctx context.Context, w Waiter, parallel int, seq iter.Seq[V], do func(context.Context, V) error) error {
	if parallel < 1 {
		return &InvalidError{"parallel", strconv.Itoa(parallel), "at least 1"}
	}
	if err := missing(w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := calls{cancel: cancel, room: make(chan struct{}, parallel)}
	finished := false
	defer func() {
		if !finished { // seq panics
			cancel()
			c.running.Wait()
		}
	}()
	for v := range seq {
		if !c.begin(ctx) {
			break
		}
		c.running.Go(func() {
			c.run(func() error {
				if err := w.WaitN(ctx, 1); err != nil {
					return cause(ctx, err)
				}
				if err := ctx.Err(); err != nil {
					return cause(ctx, err) // stopped in the meantime
				}
				return cause(ctx, do(ctx, v))
			})
		})
	}
	finished = true
	return c.result()
}

// calls are those of one [ForEach].
type calls struct {
	cancel  context.CancelFunc
	room    chan struct{} // holds an element for each call that runs
	running sync.WaitGroup

	mu       sync.Mutex
	stopped  bool
	err      error // the first
	panicked bool
	value    any  // of the first panic
	exited   bool // a call has ended its goroutine
}

// begin waits until there is room for one more call, and says whether it may begin.
func (c *calls) begin(ctx context.Context) bool {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
	}
	err := ctx.Err()
	if err != nil {
		c.stop(cause(ctx, err))
	}
	return err == nil
}

// cause is err, or why ctx has ended, if err only says that it has.
func cause(ctx context.Context, err error) error {
	if err != nil && err == ctx.Err() { //nolint:errorlint // what wraps it says more
		return context.Cause(ctx)
	}
	return err
}

// run makes one call and takes note of how it ends.
func (c *calls) run(call func() error) {
	returned := false
	defer func() {
		if !returned {
			value := recover() // nil after runtime.Goexit
			c.stop(nil)
			c.mu.Lock()
			if value == nil {
				c.exited = true
			} else if !c.panicked {
				c.panicked, c.value = true, value
			}
			c.mu.Unlock()
		}
		<-c.room
	}()
	err := call()
	returned = true
	if err != nil {
		c.stop(err)
	}
}

// stop cancels all calls, for this reason if it is the first.
func (c *calls) stop(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped = true
		c.err = why
		c.cancel()
	}
}

// result waits for the calls that run and ends as they have.
func (c *calls) result() error {
	c.running.Wait()
	switch {
	case c.panicked:
		panic(c.value)
	case c.exited:
		runtime.Goexit()
	}
	return c.err
}
