package lease

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fleet is some processes, each with a lease, around one store, in a synctest bubble. It knows
// when each token was used: what the store granted to a request at that moment, and what a lease
// granted when its answer was seen.
type fleet struct {
	store *headgate.Memory
	limit headgate.Limit

	mu   sync.Mutex
	uses []use
}

type use struct{ at, n int64 }

func newFleet(text string) *fleet {
	return &fleet{store: headgate.NewMemorySize(100), limit: must(headgate.ParseLimit(text))}
}

func (f *fleet) used(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uses = append(f.uses, use{time.Now().UnixMicro(), n})
}

// granted returns the sum of all that was used.
func (f *fleet) granted() (sum int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.uses {
		sum += u.n
	}
	return sum
}

func (f *fleet) remaining() int64 {
	r := headgate.Request{Key: "k", Limit: f.limit}
	return must(f.store.Take(context.Background(), r)).Remaining
}

// ideal is one limiter that all processes ask without a round trip, in exact arithmetic: units of
// a token a period.
type ideal struct {
	limit      headgate.Limit
	used, last int64
}

// use charges n tokens at a time, and returns how many tokens too many that is.
func (i *ideal) use(at, n int64) (over int64) {
	refill, period := i.limit.Refill(), i.limit.Period().Microseconds()
	full := i.limit.Capacity() * period
	switch i.limit.Algorithm() {
	case headgate.AlgorithmFixedWindow:
		if at/period != i.last/period {
			i.used = 0
		}
	case headgate.AlgorithmSteppedTokenBucket: // which may grant a step more in an interval
		full += refill * period
		i.used = max(i.used-(at-i.last)*refill, 0)
	default:
		i.used = max(i.used-(at-i.last)*refill, 0)
	}
	i.used, i.last = i.used+n*period, at
	return (max(i.used-full, 0) + period - 1) / period
}

// over returns by how many tokens more was used, in the worst interval, than the limit allows.
func (f *fleet) over() (worst int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortStableFunc(f.uses, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	i := ideal{limit: f.limit, last: f.uses[0].at}
	for _, u := range f.uses {
		worst = max(worst, i.use(u.at, u.n))
	}
	return worst
}

// short returns how many tokens fewer remain in the store than the uses account for.
func (f *fleet) short() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := ideal{limit: f.limit, last: f.uses[0].at}
	for _, u := range f.uses {
		i.use(u.at, u.n)
	}
	i.use(time.Now().UnixMicro(), 0)
	return f.limit.Capacity() - i.used/f.limit.Period().Microseconds() - f.remaining()
}

// wire is the way of a process to the store. What was sent arrives, however late, whether or not
// the caller still waits for it. A dead process sends nothing.
type wire struct {
	*fleet
	dead       atomic.Bool
	calls      atomic.Int64
	prefetches atomic.Int64
	late       func() time.Duration // one way
	bend       func(ds []headgate.Decision)
}

var errDead = errors.New("dead")

// direct is set by a request that the store decided.
type direct struct{}

func (w *wire) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if asked, ok := ctx.Value(direct{}).(*bool); ok {
		*asked = true
	}
	ds, err := w.send(ctx, func() []headgate.Decision {
		d := must(w.store.Take(context.WithoutCancel(ctx), r))
		if d.Allowed() && r.Cost > 0 {
			w.used(r.Cost)
		}
		return []headgate.Decision{d}
	})
	return ds[0], err
}

// TakeAll is how leases prefetch.
func (w *wire) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	w.prefetches.Add(1)
	got, err := w.send(ctx, func() []headgate.Decision {
		got := make([]headgate.Decision, len(ds))
		if err := w.store.TakeAll(context.WithoutCancel(ctx), rs, got); err != nil {
			panic(err)
		}
		if w.bend != nil {
			w.bend(got)
		}
		return got
	})
	copy(ds, got)
	return err
}

func (w *wire) send(
	ctx context.Context, call func() []headgate.Decision,
) ([]headgate.Decision, error) {
	w.calls.Add(1)
	if w.dead.Load() {
		return make([]headgate.Decision, 1), errDead
	}
	there, back := w.late(), w.late()
	answer := make(chan []headgate.Decision, 1)
	go func() {
		time.Sleep(there)
		ds := call()
		time.Sleep(back)
		answer <- ds
	}()
	select {
	case ds := <-answer:
		return ds, nil
	case <-ctx.Done():
		return make([]headgate.Decision, 1), ctx.Err()
	}
}

func (w *wire) Reset(ctx context.Context, key string, l headgate.Limit) error {
	time.Sleep(w.late())
	err := w.store.Reset(ctx, key, l)
	time.Sleep(w.late())
	return err
}

// process is one of a fleet.
type process struct {
	*wire
	lease *Store
}

func (f *fleet) process(o Options, late func() time.Duration) *process {
	w := &wire{fleet: f, late: late}
	return &process{w, must(New(w, o))}
}

// ask asks for n tokens. ahead reports whether the lease decided.
func (p *process) ask(n int64) (d headgate.Decision, ahead bool) {
	asked := false
	ctx := context.WithValue(context.Background(), direct{}, &asked)
	d, err := p.lease.Take(ctx, headgate.Request{Key: "k", Limit: p.limit, Cost: n})
	if err == nil && d.Allowed() && !asked {
		p.used(n)
	}
	return d, !asked
}

// end closes the lease, and waits until all messages have arrived.
func (p *process) end() {
	p.lease.Close()
	time.Sleep(time.Second)
}

// held returns the tokens that p may use now, and until when at the latest.
func (p *process) held() (tokens, end int64) {
	row, hash := p.lease.hot.row("k", p.limit)
	row.mu.Lock()
	defer row.mu.Unlock()
	c := row.find(hash)
	if c == nil || c.held == nil {
		return 0, 0
	}
	tokens = c.held.left(p.lease.clock.Micros())
	return tokens, max(c.held.batches[0].end, c.held.batches[1].end)
}

// heat asks for a token each millisecond, and after a while until p holds many.
func (p *process) heat(t *testing.T) (tokens, end int64) {
	t.Helper()
	for i := range 1000 {
		p.ask(1)
		synctest.Wait()
		if tokens, end = p.held(); i > 150 && tokens > 20 {
			return tokens, end
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s: nothing was prefetched", p.limit)
	return 0, 0
}

func at(micros int64) {
	time.Sleep(time.Duration(micros-time.Now().UnixMicro()) * time.Microsecond)
}

func instantly() time.Duration { return 0 }

// steady is a way to the store that takes half a millisecond in each direction.
func steady() time.Duration { return 500 * time.Microsecond }

// weather is what befalls messages: most take a millisecond, some longer than a TTL.
func weather(random *rand.Rand) func() time.Duration {
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(20) == 0 {
			return time.Duration(random.Int64N(int64(300 * time.Millisecond)))
		}
		return time.Duration(random.Int64N(int64(2 * time.Millisecond)))
	}
}
