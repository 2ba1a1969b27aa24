package headgate

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/await"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// midnight is when the timelines of these tests begin: an edge of every window that divides a
// day. It lies in the past, because no state expires at a time that is still ahead.
var midnight = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// everyAlgorithm is a limit of n in each period, by each algorithm.
func everyAlgorithm(n int64, period time.Duration) []Limit {
	return []Limit{
		Per(n, period).Burst(n),
		SteppedTokenBucket(n, period).Burst(n),
		FixedWindow(n, period),
		SlidingWindow(n, period),
		SlidingLog(n, period),
	}
}

// ask takes cost of key at the given time after midnight.
func ask(t testing.TB, s Store, key string, l Limit, cost int64, after time.Duration) Decision {
	t.Helper()
	d, err := s.Take(t.Context(), Request{Key: key, Limit: l, Cost: cost, At: midnight.Add(after)})
	if err != nil {
		t.Fatalf("take %d of %q under %v at %v: %v", cost, key, l, after, err)
	}
	return d
}

// row is one request of a timeline, and the answer to it.
type row struct {
	after     time.Duration // since midnight
	cost      int64
	allowed   bool
	remaining int64
	retry     time.Duration
	reset     time.Duration
	remark    string
}

// play takes the rows one after the other, from one key.
func play(t *testing.T, s Store, l Limit, rows []row) {
	t.Helper()
	for i, r := range rows {
		d := ask(t, s, "key", l, r.cost, r.after)
		got := row{r.after, r.cost, d.Allowed(), d.Remaining, d.RetryAfter, d.ResetAfter, r.remark}
		if got != r {
			t.Errorf("%v: row %d (%s)\n got %+v\nwant %+v", l, i+1, r.remark, got, r)
		}
		if d.Limit != l {
			t.Errorf("%v: row %d was decided by %v", l, i+1, d.Limit)
		}
	}
}

const micro = time.Microsecond

// take is ask, so many microseconds after midnight.
func take(t *testing.T, s Store, key string, l Limit, cost, micros int64) Decision {
	t.Helper()
	return ask(t, s, key, l, cost, time.Duration(micros)*time.Microsecond)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func isInvalid(err error) bool {
	fault := (*InvalidError)(nil)
	return errors.As(err, &fault)
}

var errLost = errors.New("the answer was lost")

// networkStore is a store across a network. It does what it was asked, even if the caller's context
// ends meanwhile; the caller then gets the error of the context, and no answer.
type networkStore struct {
	Store
	there, back time.Duration
	mu          sync.Mutex
	random      *rand.Rand           // if not nil, each way takes up to twice as long, or no time
	lose        func(r Request) bool // the answer to r
}

func (s *networkStore) delay(d time.Duration) time.Duration {
	if s.random != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		d = time.Duration(s.random.Int64N(2*d.Microseconds())) * time.Microsecond
	}
	return d
}

func (s *networkStore) Take(ctx context.Context, r Request) (d Decision, err error) {
	err = s.travel(ctx, r, func() error {
		d, err = s.Store.Take(ctx, r)
		return err
	})
	if err != nil {
		return Decision{}, err
	}
	return d, nil
}

func (s *networkStore) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	return s.travel(ctx, rs[0], func() error { return s.Store.TakeAll(ctx, rs, ds) })
}

func (s *networkStore) travel(ctx context.Context, r Request, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	time.Sleep(s.delay(s.there))
	err := do()
	if ended := await.Sleep(ctx, s.delay(s.back)); ended != nil {
		return ended
	}
	if s.lose != nil && s.lose(r) {
		return errLost
	}
	return err
}
