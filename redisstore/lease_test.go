package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
)

// counting counts the calls of a store.
type counting struct {
	headgate.Store
	calls *atomic.Int64
}

func (c counting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	c.calls.Add(1)
	return c.Store.Take(ctx, r)
}

func (c counting) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	c.calls.Add(1)
	return c.Store.TakeAll(ctx, rs, ds)
}

// Four leases around one Redis are asked for a part of what there is. What was granted and what is
// left are no more than that, and no less than what they may take away.
func TestLeases(t *testing.T) {
	client := newClient(t)
	limit := headgate.PerHour(1).Burst(200000)
	var calls, granted atomic.Int64
	var leases []*headgate.Lease
	for range 4 {
		l, err := headgate.NewLease(counting{newStore(t, client), &calls}, headgate.LeaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	ask := func(l *headgate.Lease, until func() bool) {
		for !until() {
			d, err := l.Take(t.Context(), headgate.Request{Key: "hot", Limit: limit, Cost: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if d.Allowed() {
				granted.Add(1)
			}
		}
	}
	all := func(until func() bool) {
		var wg sync.WaitGroup
		for _, l := range leases {
			for range 8 {
				wg.Go(func() { ask(l, until) })
			}
		}
		wg.Wait()
	}
	all(func() bool { return granted.Load() >= 50000 })
	before := calls.Load()
	t.Logf("%d calls for 50000", before)
	if before > 25000 {
		t.Errorf("%d calls for 50000 requests", before)
	}
	for _, l := range leases {
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d, err := leases[0].Take(t.Context(), headgate.Request{Key: "hot", Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	// What is neither left nor used was taken away, to keep the bucket from being full.
	if lost := limit.Capacity() - granted.Load() - d.Remaining; lost < 0 || lost > limit.Capacity()*3/10 {
		t.Errorf("%d granted and %d remain of %d", granted.Load(), d.Remaining, limit.Capacity())
	} else {
		t.Logf("%d taken away", lost)
	}
}
