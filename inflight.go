package headgate

import (
	"context"
	"crypto/rand"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Concurrency lets at most N of each key be in flight at a time. Who is let go ahead
// holds a [Flight] and gives it back; if its holder dies, the flight's lease ends and
// makes room. It is safe for use by many goroutines, starts none of its own, and
// needs no closing. Make one with [NewConcurrency].
//
// Most callers want [Concurrency.Acquire], which answers at once, or
// [Concurrency.Wait]. Those who may hold a flight for longer than its lease add
// [Flight.Keep].
//
// What is held belongs to the key: two Concurrency of one store that are asked about
// the same key count the same flights, each against its own N.
type Concurrency struct {
	store ConcurrencyStore
	lease time.Duration
	n     atomic.Int64

	waiting atomic.Int64 // in all queues
	mu      sync.Mutex
	queues  map[string]*flightQueue // of the keys that somebody waits for
}

// minLease is the shortest that can be kept. A store counts in microseconds nevertheless.
const minLease = time.Millisecond

// NewConcurrency limits each key to n flights at a time, from 1 to 65,535. The lease of
// a flight ends after the given time, at least a millisecond and at most 8760 hours,
// unless it is renewed: choose it longer than the pauses of a holder that is alive, and
// as short as you can bear to miss the place of one that is dead. It returns an
// [InvalidError] for any other number or time, or if store is nil.
func NewConcurrency(store ConcurrencyStore, n int64, lease time.Duration) (*Concurrency, error) {
	if v := reflect.ValueOf(store); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &InvalidError{Field: "store", Value: "nil", Want: "a ConcurrencyStore, such as NewMemoryConcurrency()"}
	}
	if lease < minLease || lease > maxLease {
		return nil, &InvalidError{Field: "lease", Value: lease.String(), Want: "at least 1ms, because to keep a shorter one takes asking all the time, and at most 8760h"}
	}
	c := &Concurrency{store: store, lease: lease.Truncate(time.Microsecond), queues: make(map[string]*flightQueue)}
	if err := c.SetN(n); err != nil {
		return nil, err
	}
	return c, nil
}

// N is how many of each key may be in flight at a time.
func (c *Concurrency) N() int64 { return c.n.Load() }

// SetN changes N, at once and for all keys. Flights beyond a smaller N end by
// themselves; until then none is begun. It returns an [InvalidError], and changes
// nothing, in the case told at [NewConcurrency].
func (c *Concurrency) SetN(n int64) error {
	if n < 1 || n > maxFlights {
		return invalid("n", n, "from 1 to 65535")
	}
	if n > c.n.Swap(n) {
		c.wakeAll()
	}
	return nil
}

// Acquire begins a flight of key if there is room for one, and never waits for room.
// If there is none, the flight is nil and the decision says when to come back. Those
// who wait for the key in this Concurrency are served first.
//
// If ctx has ended, its error is returned and nothing is begun. Any other error means that
// the store could not say, or that ctx ended meanwhile. The flight may have begun then; if it
// has, it is given back behind the caller, or else its lease ends.
func (c *Concurrency) Acquire(ctx context.Context, key string) (*Flight, FlightDecision, error) {
	n := c.n.Load()
	f, d, err := c.ask(ctx, key, max(n-c.Waiting(key), 0), false)
	if err == nil {
		d.N = n
	}
	return f, d, err
}

// Peek tells how many of key are in flight, and what Acquire would be told if nobody
// waited. It begins nothing.
func (c *Concurrency) Peek(ctx context.Context, key string) (FlightDecision, error) {
	if err := ctx.Err(); err != nil {
		return FlightDecision{}, err
	}
	return c.store.AcquireFlight(ctx, FlightRequest{Key: key, N: c.n.Load(), Lease: c.lease})
}

// ask asks the store for a flight of key.
func (c *Concurrency) ask(ctx context.Context, key string, n int64, waits bool) (*Flight, FlightDecision, error) {
	if err := ctx.Err(); err != nil {
		return nil, FlightDecision{}, err // whatever the store does
	}
	var id FlightID
	_, _ = rand.Read(id[:]) // never fails; the system's, because copies of a virtual machine would go on with the same numbers
	r := FlightRequest{Key: key, ID: id, N: n, Lease: c.lease, Waits: waits}
	asked := time.Now()
	d, err := c.store.AcquireFlight(ctx, r)
	if err != nil || !d.Allowed() {
		return nil, d, err
	}
	r.Waits = false
	return newFlight(c.store, r, asked), d, nil
}
