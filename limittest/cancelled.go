package limittest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// cancelledBookings books a grant, while nothing else is booked, and cancels it. A twin of the key
// books nothing. A bucket and a sliding log end as they were, and so does a stepped bucket of small
// steps. A window never has more than its twin, and from the start on not less.
func cancelledBookings(t *testing.T, s headgate.Store) {
	for _, text := range []string{
		"100/m", "7/h burst 20", "3/s burst 10", "999983/s burst 1000", "2/10s stepped burst 20",
		"20/m stepped", "20/m fixed-window", "20/m sliding-window", "20/m sliding-log",
	} {
		l := parse(t, text)
		eachSeed(t, 12, func(seed uint64) error {
			c := &cancelled{Rand: rand.New(rand.NewPCG(seed, 7)), store: s, limit: l, at: epoch}
			c.key = fmt.Sprint("cancelled ", text, seed)
			return c.run(t)
		})
	}
}

type cancelled struct {
	*rand.Rand
	store headgate.Store
	key   string
	limit headgate.Limit
	at    time.Time
}

func (c *cancelled) run(t *testing.T) error {
	for range 5 { // use all of it, at several times
		c.at = c.at.Add(time.Duration(c.Int64N(int64(time.Second)))).Truncate(time.Microsecond)
		n := take(t, c.store, c.request(c.key, 0)).Remaining
		if n = min(n, 1+c.limit.Capacity()/3); n > 0 {
			take(t, c.store, c.request(c.key, n))
			take(t, c.store, c.request(c.key+" twin", n))
		}
	}
	if n := take(t, c.store, c.request(c.key, 0)).Remaining; n > 0 {
		take(t, c.store, c.request(c.key, n))
		take(t, c.store, c.request(c.key+" twin", n))
	}
	r := c.request(c.key, 1+c.Int64N(max(c.limit.Capacity()/3, 1)))
	r.MaxWait, r.Start = year, new(time.Time)
	take(t, c.store, r)
	err := c.cancel(t, r)
	if err == nil {
		err = c.compare(t, *r.Start)
	}
	for _, key := range []string{c.key, c.key + " twin"} { // else a long soak fills the store
		err = errors.Join(err, c.store.Reset(t.Context(), key, c.limit))
	}
	return err
}

// exact reports whether all is as it was in the end. A step that brings more than is missing
// hides what was missing, as a window hides the one before.
func (c *cancelled) exact() bool {
	switch c.limit.Algorithm() {
	case headgate.AlgorithmTokenBucket, headgate.AlgorithmSlidingLog:
		return true
	case headgate.AlgorithmSteppedTokenBucket:
		return 2*c.limit.Refill() < c.limit.Capacity()
	default:
		return false
	}
}

func (c *cancelled) request(key string, cost int64) headgate.Request {
	return headgate.Request{Key: key, Limit: c.limit, Cost: cost, At: c.at}
}

func (c *cancelled) cancel(t *testing.T, r headgate.Request) error {
	r.Cost, r.MaxWait = -r.Cost, 0
	if d := take(t, c.store, r); !d.Allowed() {
		return fmt.Errorf("%s: cancel: %s", show(r), describe(d))
	}
	return nil
}

// compare looks at the key and its twin up to two periods after the start.
func (c *cancelled) compare(t *testing.T, start time.Time) error {
	from, span := c.at, start.Sub(c.at)+2*c.limit.Period()
	for i := range 41 {
		c.at = from.Add(span / 40 * time.Duration(i)).Truncate(time.Microsecond)
		d, twin := take(t, c.store, c.request(c.key, 0)), take(t, c.store,
			c.request(c.key+" twin", 0))
		short := twin.Remaining - d.Remaining
		if c.exact() && d != twin || short < 0 || short > 0 && !c.at.Before(start) {
			return fmt.Errorf("%s: at %s: %s; never booked: %s", c.key, c.at.Sub(epoch),
				describe(d), describe(twin))
		}
	}
	return nil
}
