package headgate

import (
	"testing"
	"testing/synctest"
	"time"
)

// The Lease goes around the DenyCache: so what the process has ahead is used, and what it gave back is
// noticed, though the store denied. The other way round it would go on denying, which is not wrong but short.
func TestLeaseAroundDenyCache(t *testing.T) {
	for _, inside := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{store: NewMemory(100), limit: must(ParseLimit("1000/s fixed-window"))}
			defer time.Sleep(time.Second) // until all that is on its way has arrived
			p, other := f.process(LeaseOptions{Share: 0.25}, steady), f.process(LeaseOptions{Share: 0.25}, steady)
			var s Store = must(NewDenyCache(p.lease, DenyCacheOptions{}))
			if inside {
				p.lease = must(NewLease(must(NewDenyCache(p.wire, DenyCacheOptions{})), LeaseOptions{Share: 0.25}))
				s = p.lease
			}
			ask := func(n int64) bool {
				return must(s.Take(t.Context(), Request{Key: "k", Limit: f.limit, Cost: n})).Allowed()
			}
			n := p.hold(t)
			d, _ := other.ask(t.Context(), f.limit.Capacity())
			other.ask(t.Context(), d.Remaining)
			for range 2 { // after which the cache knows what the store has: nothing
				if ask(n.left + 1) {
					t.Fatal("more was granted than there is")
				}
			}
			if got := ask(1); got != inside {
				t.Errorf("inside %v: granted %v, while the process has %d ahead", inside, got, n.left)
			}
			time.Sleep(100 * time.Millisecond) // until the rest has been given back
			if got := ask(1); got != inside {
				t.Errorf("inside %v: granted %v, when the rest had been given back", inside, got)
			}
		})
	}
}
