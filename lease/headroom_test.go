package lease

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
)

// A request that leaves headroom is decided by the store, however many tokens the lease holds: they
// are no part of what is left to others.
func TestHeldTokensAreNoHeadroom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s")
		p := f.process(Options{}, steady)
		defer p.end()
		held, _ := p.heat(t)
		left := f.remaining() + held/2
		batch := headgate.Request{Key: "k", Limit: f.limit, Cost: 1, Headroom: left}
		if d, err := p.lease.Take(context.Background(), batch); err != nil || d.Allowed() {
			t.Errorf("%d are held, and %d are to be left: %+v, %v", held, left, d, err)
		}
		if d, ahead := p.ask(1); !d.Allowed() || !ahead {
			t.Errorf("another class: %+v, by the lease %v", d, ahead)
		}
	})
}
