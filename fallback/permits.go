package fallback

import (
	"context"

	"github.com/headgate/headgate/concurrency"
)

// maxPermits is the largest limit of permits.
const maxPermits = 65_535

// Permits puts s around a store of permits, which is the same server as the store of s: calls have
// the time budget of s, and count for its circuits. While the store fails, [Open] grants every
// permit, [Closed] returns [ErrDegraded], and so does [Local] while the number of instances is
// unknown. Else Local grants this instance's share of the limit, rounded down, but at least one
// permit of each key.
//
// Closed counts nothing in this process. The other modes count this process's permits while the
// store answers, too, so a share is not fresh when the store fails. A permit that is renewed when
// the store answers again is in use there, even beyond the limit, whether the mode granted it or
// the store has lost it.
//
// A release without the store is ErrDegraded if the store granted the permit: call it again, or the
// permit expires there.
func (s *Store) Permits(permits concurrency.Store) concurrency.Store {
	return &permitStore{s, permits, concurrency.NewMemory()}
}

type permitStore struct {
	*Store

	permits concurrency.Store
	local   *concurrency.Memory // the permits of this process
}

// AcquirePermit implements concurrency.Store.
func (p *permitStore) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (d concurrency.Decision, err error) {
	why := p.circuits.of(r.Key).do(ctx, func(ctx context.Context) (err error) {
		d, err = p.permits.AcquirePermit(ctx, r)
		return err
	})
	limit := r.Limit
	if why == nil {
		if p.options.Mode != Closed && d.Allowed() && r.ID != (concurrency.PermitID{}) {
			r.Limit = maxPermits
			_, _ = p.local.AcquirePermit(ctx, r)
		}
		return d, nil
	}
	if err := callersError(ctx, why); err != nil {
		return d, err
	}
	p.degraded.Add(1)
	switch instances := int64(p.instances()); {
	case p.options.Mode == Open:
		r.Limit = min(limit*maxPermits, maxPermits) // 0 grants nothing
	case instances > 0:
		r.Limit = max(limit/instances, min(limit, 1))
	default:
		return concurrency.Decision{}, &degradedError{why}
	}
	d, err = p.local.AcquirePermit(ctx, ofMode(r))
	d.Limit = limit
	return d, err
}

// ofMode returns r for a permit that the mode grants. In local, it has another ID, which tells it
// from those that the store has granted.
func ofMode(r concurrency.Request) concurrency.Request {
	if r.ID != (concurrency.PermitID{}) {
		r.ID[0] ^= 0xff
	}
	return r
}

// RenewPermit implements concurrency.Store.
func (p *permitStore) RenewPermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	why := p.circuits.of(r.Key).do(ctx, func(ctx context.Context) error {
		held, err = p.permits.RenewPermit(ctx, r)
		// After the answer: a permit that is released meanwhile is released in local first.
		if known := p.renewLocal(ctx, r); known && !held && err == nil {
			r.Limit = maxPermits
			var d concurrency.Decision
			d, err = p.permits.AcquirePermit(ctx, r)
			held = d.Allowed()
		}
		return err
	})
	if why == nil {
		return held, nil
	}
	if err := callersError(ctx, why); err != nil {
		return false, err
	}
	if p.renewLocal(ctx, r) {
		return true, nil
	}
	return false, &degradedError{why}
}

// renewLocal renews a permit of this process, and reports whether it is one.
func (p *permitStore) renewLocal(ctx context.Context, r concurrency.Request) bool {
	ofStore, _ := p.local.RenewPermit(ctx, r)
	ours, _ := p.local.RenewPermit(ctx, ofMode(r))
	return ofStore || ours
}

// ReleasePermit implements concurrency.Store.
func (p *permitStore) ReleasePermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	_, _ = p.local.ReleasePermit(ctx, r)
	ours, _ := p.local.ReleasePermit(ctx, ofMode(r))
	why := p.circuits.of(r.Key).do(ctx, func(ctx context.Context) error {
		held, err = p.permits.ReleasePermit(ctx, r)
		return err
	})
	if why == nil || ours {
		return held || ours, nil
	}
	if err := callersError(ctx, why); err != nil {
		return false, err
	}
	return false, &degradedError{why}
}

// WatchPermits implements concurrency.Store.
func (p *permitStore) WatchPermits(key string, wake chan<- struct{}) (stop func()) {
	store, local := p.permits.WatchPermits(key, wake), p.local.WatchPermits(key, wake)
	return func() {
		store()
		local()
	}
}
