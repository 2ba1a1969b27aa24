package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

var _ headgate.ConcurrencyStore = (*Store)(nil)

// concurrency is a script of its own: what limits need would slow it down, and it them.
var concurrency = sync.OnceValue(func() redisscript.Script { return redisscript.New(file("concurrency")) })

// AcquireFlight implements headgate.ConcurrencyStore, in one round trip. If the answer
// is lost, the same question is asked once more, which begins nothing twice. If that
// is lost, too, or ctx ends meanwhile, the flight is given back behind the caller.
func (s *Store) AcquireFlight(ctx context.Context, r headgate.FlightRequest) (headgate.FlightDecision, error) {
	if err := r.Validate(); err != nil {
		return headgate.FlightDecision{}, err
	}
	giveBack := func() { s.askFlight(ctx, "release", r) }
	a, left := s.awaitFlight(ctx, "acquire", r, func(late flightAnswer) {
		if late.held || mayHaveRun(late.err) {
			giveBack()
		}
	})
	if !left && mayHaveRun(a.err) {
		behind(giveBack)
	}
	if a.err != nil {
		return headgate.FlightDecision{}, s.dialErrors.explain(ctx, s.explain(a.err))
	}
	return headgate.FlightDecision{N: r.N, InFlight: a.inFlight, RetryAfter: a.retry}, nil
}

// RenewFlight implements headgate.ConcurrencyStore, in one round trip, or a second one if
// the answer is lost.
func (s *Store) RenewFlight(ctx context.Context, r headgate.FlightRequest) (held bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	a, _ := s.awaitFlight(ctx, "renew", r, nil)
	return a.held, s.dialErrors.explain(ctx, s.explain(a.err))
}

// ReleaseFlight implements headgate.ConcurrencyStore, in one round trip. If the answer is
// lost, it asks once more, and says held: it may have been.
func (s *Store) ReleaseFlight(ctx context.Context, r headgate.FlightRequest) (held bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		behind(func() { s.askFlight(ctx, "release", r) })
		return false, s.explain(err)
	}
	a, _ := s.awaitFlight(ctx, "release", r, nil)
	return a.held, s.dialErrors.explain(ctx, s.explain(a.err))
}

// WatchFlights implements headgate.ConcurrencyStore. While anybody watches, one more
// connection listens to the channels of all keys that are watched, which are named as the
// keys are. In a redis.Ring only those of one shard are heard. Who waits is woken in
// vain when the listening begins, and after a broken connection, since something may have
// been missed.
func (s *Store) WatchFlights(key string, wake chan<- struct{}) (stop func()) {
	return s.listener.watch(s.client, s.flightKey(key), wake)
}

// flightKey is the key in Redis for the flights of key. The ID of a limit begins with a
// letter or a digit.
func (s *Store) flightKey(key string) string { return s.prefix + "{" + escape(key) + "}:@flights" }

// flightAnswer is what the script says, or why it could not.
type flightAnswer struct {
	held     bool
	inFlight int64
	retry    time.Duration
	err      error
}

// awaitFlight is askFlight until ctx ends. If that is first, the caller has left, and late,
// if there is one, gets the answer when it comes.
func (s *Store) awaitFlight(ctx context.Context, op string, r headgate.FlightRequest, late func(flightAnswer)) (a flightAnswer, left bool) {
	var answer flightAnswer
	var settled atomic.Bool // by the answer, or by the caller who leaves: whichever is first
	err := redisscript.Await(ctx, func() error {
		answer = s.askFlight(ctx, op, r)
		if !settled.CompareAndSwap(false, true) && late != nil {
			late(answer)
		}
		return nil
	})
	if settled.CompareAndSwap(false, true) {
		return flightAnswer{err: err}, true
	}
	return answer, false
}

// askFlight runs the script, once more if the answer was lost. It does not end with ctx.
func (s *Store) askFlight(ctx context.Context, op string, r headgate.FlightRequest) flightAnswer {
	ctx = context.WithoutCancel(ctx)
	a := s.askFlightOnce(ctx, op, r)
	if mayHaveRun(a.err) {
		a = s.askFlightOnce(ctx, op, r)
		a.held = a.held || op == "release"
	}
	if op == "release" && a.held {
		s.listener.released(s.flightKey(r.Key))
	}
	return a
}

func (s *Store) askFlightOnce(ctx context.Context, op string, r headgate.FlightRequest) flightAnswer {
	id := r.ID[:]
	if r.ID == (headgate.FlightID{}) {
		id = nil
	}
	numbers, err := s.clock.Run(ctx, s.client, concurrency(), []string{s.flightKey(r.Key)}, func(now int64) []any {
		if !r.At.IsZero() {
			now = r.At.UnixMicro()
		}
		return []any{op, id, now, r.Lease.Microseconds(), r.N, r.Waits}
	})
	if err == nil && len(numbers) != 3 {
		err = fmt.Errorf("script returned %d numbers for a flight", len(numbers))
	}
	if err != nil {
		return flightAnswer{err: err}
	}
	return flightAnswer{held: numbers[0] == 1, inFlight: numbers[1], retry: time.Duration(numbers[2]) * time.Microsecond}
}

// mayHaveRun says whether a script that ended in err may have run.
func mayHaveRun(err error) bool {
	if _, answered := errors.AsType[redis.Error](err); err == nil || answered {
		return false
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return false
	}
	return !errors.Is(err, redis.ErrClosed) && !errors.Is(err, redis.ErrPoolTimeout)
}

// behind makes a call that nobody waits for. A hook of the client that panics has
// nobody to deal with it.
func behind(call func()) {
	go func() {
		defer func() { _ = recover() }()
		call()
	}()
}
