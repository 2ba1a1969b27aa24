package headgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fleet is some processes, each with a Lease, around one store; in a bubble, where waiting
// takes no time. It knows when each token was used: what the store granted at that
// moment, and what a Lease granted when its answer was seen.
type fleet struct {
	store *Memory
	limit Limit

	mu   sync.Mutex
	uses []use
}

type use struct{ at, n int64 }

func (f *fleet) used(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uses = append(f.uses, use{time.Now().UnixMicro(), n})
}

// granted is the sum of all that was used.
func (f *fleet) granted() (sum int64) {
	for _, u := range f.uses {
		sum += u.n
	}
	return sum
}

// over is by how many tokens, at worst, more was used than the limit allows in any interval, up to
// a token.
func (f *fleet) over() (most int64) {
	slices.SortStableFunc(f.uses, func(a, b use) int { return int(a.at - b.at) })
	l := f.limit.rule
	if l.algorithm == AlgorithmFixedWindow {
		counts := map[int64]int64{}
		for _, u := range f.uses {
			counts[u.at/l.period] += u.n
			most = max(most, counts[u.at/l.period]-l.capacity)
		}
		return most
	}
	// In units of a token a period: all that fits into any interval fits into this bucket, and
	// the other way round. A stepped one may grant a step more.
	full := l.capacity * l.period
	if l.algorithm == AlgorithmStepped {
		full += l.refill * l.period
	}
	var used, last int64
	for i, u := range f.uses {
		if i == 0 {
			last = u.at
		}
		used = max(used-(u.at-last)*l.refill, 0) + u.n*l.period
		last = u.at
		most = max(most, ceilDiv(max(used-full, 0), l.period))
	}
	return most
}

// wire is the way of a process to the store. What was sent arrives, however late, and
// whether or not somebody waits for it; nothing is sent any more by the dead.
type wire struct {
	*fleet
	dead  atomic.Bool
	calls atomic.Int64
	late  func() time.Duration // one way
	bend  func(ctx context.Context, rs []Request, ds []Decision) (done bool, err error)
}

var errDead = errors.New("dead")

func (w *wire) send(ctx context.Context, call func() error) error {
	w.calls.Add(1)
	if w.dead.Load() {
		return errDead
	}
	there, back := w.late(), w.late()
	answer := make(chan error, 1)
	go func() {
		time.Sleep(there)
		err := call()
		time.Sleep(back)
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plain is set by a request that the store decided.
type plain struct{}

func (w *wire) Take(ctx context.Context, r Request) (d Decision, err error) {
	if p, ok := ctx.Value(plain{}).(*bool); ok {
		*p = true
	}
	err = w.send(ctx, func() (err error) {
		if d, err = w.store.Take(ctx, r); err == nil && d.Allowed() && r.Cost > 0 {
			w.used(r.Cost)
		}
		return err
	})
	return d, err
}

func (w *wire) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	got := make([]Decision, len(ds)) // the caller may have left
	err := w.send(ctx, func() error {
		if w.bend != nil {
			if done, err := w.bend(ctx, rs, got); done {
				return err
			}
		}
		return w.store.TakeAll(ctx, rs, got)
	})
	if err == nil {
		copy(ds, got)
	}
	return err
}

func (w *wire) Reset(ctx context.Context, key string, l Limit) error {
	return w.send(ctx, func() error { return w.store.Reset(ctx, key, l) })
}

// process is one of a fleet.
type process struct {
	*wire
	lease *Lease
}

func (f *fleet) process(o LeaseOptions, late func() time.Duration) *process {
	w := &wire{fleet: f, late: late}
	return &process{w, must(NewLease(w, o))}
}

// ask asks for n tokens.
func (p *process) ask(ctx context.Context, n int64) (d Decision, ahead bool) {
	asked := false
	d, err := p.lease.Take(context.WithValue(ctx, plain{}, &asked), Request{Key: "k", Limit: p.limit, Cost: n})
	if err == nil && d.Allowed() && !asked {
		p.used(n)
	}
	return d, !asked
}

// weather is what befalls messages: most take a millisecond, some longer than a term.
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

// live lets p ask as long as the others do: little, about as much as all are allowed together, or more, in
// turn; and now and then for all that there is at once. One in three dies on the way.
func (p *process) live(ctx context.Context, random *rand.Rand, end time.Time) {
	var wg sync.WaitGroup
	defer wg.Wait()
	death := end
	if random.IntN(3) == 0 {
		death = time.Now().Add(time.Duration(random.Int64N(int64(time.Until(end)))))
	}
	each := p.limit.Period() / time.Duration(max(p.limit.Refill(), 1))
	if p.limit.Refill() == 0 {
		each = p.limit.Period() / time.Duration(p.limit.Capacity())
	}
	for time.Now().Before(death) {
		gap := each * time.Duration(1+random.IntN(20))
		for range 50 + random.IntN(300) {
			cost := 1 + random.Int64N(2)
			wg.Go(func() { p.ask(ctx, cost) })
			time.Sleep(gap/2 + time.Duration(random.Int64N(int64(gap))))
		}
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
		}
		if random.IntN(6) == 0 {
			for range p.limit.Capacity() {
				wg.Go(func() { p.ask(ctx, 1) })
			}
		}
	}
	if death != end {
		p.dead.Store(true)
	}
}

var leased = []string{"2000/s burst 1000", "1000/s", "10/2ms burst 2000 stepped", "1000/s fixed-window", "1000/400ms fixed-window"}

// runFleet is by how much too many tokens were used, how many were, and for how many calls.
func runFleet(t *testing.T, text string, seed uint64, bent bend) (over, granted, calls int64) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
		var wg sync.WaitGroup
		var all []*process
		for i := range uint64(5) {
			random := rand.New(rand.NewPCG(seed, i))
			p := f.process(LeaseOptions{Share: 0.25}, weather(random))
			if bent != nil {
				p.bend = bent(f)
			}
			all = append(all, p)
			wg.Go(func() { p.live(t.Context(), rand.New(rand.NewPCG(seed, 100+i)), time.Now().Add(4*time.Second)) })
		}
		wg.Wait()
		for _, p := range all {
			_ = p.lease.Close(t.Context()) // in this weather, or after death, not all comes back
			calls += p.calls.Load()
		}
		time.Sleep(time.Second) // until what is late has arrived
		over, granted = f.over(), f.granted()
	})
	return over, granted, calls
}

func TestLeaseIsNeverOver(t *testing.T) {
	for _, text := range leased {
		for seed := range uint64(max(often(4), 1)) {
			over, granted, calls := runFleet(t, text, seed, nil)
			if over != 0 {
				t.Errorf("%s, seed %d: %d tokens over", text, seed, over)
			}
			t.Logf("%s: %d granted in %d calls", text, granted, calls)
		}
	}
}

type bend func(f *fleet) func(ctx context.Context, rs []Request, ds []Decision) (done bool, err error)

// rush lets a process take tokens ahead from a bucket that is full but for them, and use them at
// the very end of its term, after another one has taken all that there is; and then once more, but
// what it has left arrives late, while another one takes all that there is before and after.
// It returns by how much too many were used.
func rush(t *testing.T, text string, bent bend) (over int64) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
		var late atomic.Int64
		holder := f.process(LeaseOptions{Share: 0.25}, func() time.Duration { return time.Duration(late.Load()) })
		other := f.process(LeaseOptions{Share: 0.25}, func() time.Duration { return 0 })
		if bent != nil {
			holder.bend = bent(f)
		}
		all := func() {
			if d, _ := other.ask(t.Context(), f.limit.Capacity()); !d.Allowed() && d.Remaining > 0 {
				other.ask(t.Context(), d.Remaining)
			}
		}
		time.Sleep(time.Until(time.Now().Add(time.Second).Truncate(time.Second)) + time.Microsecond)
		n := holder.hold(t)
		time.Sleep(time.Duration(n.until-holder.lease.now()) - 10*time.Microsecond)
		all()
		for range n.left {
			holder.ask(t.Context(), 1)
		}
		time.Sleep(10 * f.limit.Period())

		n = holder.hold(t)
		late.Store(int64(time.Second)) // for what is sent at the end of the term
		time.Sleep(time.Duration(n.until-holder.lease.now()) + time.Second - time.Microsecond)
		late.Store(0)
		all()
		for range n.left { // it is over
			holder.ask(t.Context(), 1)
		}
		time.Sleep(2 * time.Microsecond)
		all()
		time.Sleep(time.Second)
		over = f.over()
	})
	return over
}

// hold asks for a token each millisecond, and after a while until p has many ahead.
func (p *process) hold(t *testing.T) held {
	t.Helper()
	row, hash := p.lease.demands.row("k", p.limit)
	for i := range 1000 {
		p.ask(t.Context(), 1)
		synctest.Wait()
		row.mu.Lock()
		n := held{}
		if d := row.find(hash); d != nil && d.loan != nil {
			n = held{d.loan.left, d.loan.until}
		}
		row.mu.Unlock()
		if i > 150 && n.left > 30 {
			return n
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s: nothing was taken ahead", p.limit)
	return held{}
}

// held is what a process has ahead.
type held struct{ left, until int64 }

func TestLeaseInARush(t *testing.T) {
	for _, text := range leased {
		if over := rush(t, text, nil); over != 0 {
			t.Errorf("%s: %d tokens over", text, over)
		}
	}
	// And what makes it exact is left out, one part at a time.
	for name, c := range map[string]struct {
		texts []string
		bend  bend
	}{
		"the line": {leased[:3], func(f *fleet) func(context.Context, []Request, []Decision) (bool, error) {
			return func(ctx context.Context, rs []Request, ds []Decision) (bool, error) {
				err := f.store.TakeAll(ctx, rs, ds)
				ds[0].Remaining = 0 // as if all were missing
				return true, err
			}
		}},
		"giving back in time": {[]string{leased[0], leased[1], leased[2], leased[4]}, func(f *fleet) func(context.Context, []Request, []Decision) (bool, error) {
			return func(ctx context.Context, rs []Request, ds []Decision) (back bool, err error) {
				if back = rs[0].Cost < 0; back {
					ds[0], err = f.store.Take(ctx, rs[0])
				}
				return back, err
			}
		}},
	} {
		for _, text := range c.texts {
			over := rush(t, text, c.bend)
			t.Logf("%s without %s: %d over", text, name, over)
			if over == 0 {
				t.Errorf("%s without %s: never over", text, name)
			}
		}
	}
}
