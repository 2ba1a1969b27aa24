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
// A permit that the mode granted stays in this process until its end. So until then, a limit can be
// in use once in the store, and once in the shares.
//
// Without the store, a renewal or a release of a permit that the store granted is ErrDegraded: call
// it again, or the permit expires there.
func (s *Store) Permits(permits concurrency.Store) concurrency.Store {
	return &permitStore{s, permits, concurrency.NewMemory()}
}

type permitStore struct {
	*Store

	permits concurrency.Store
	local   *concurrency.Memory // the permits that the mode granted
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
	d, err = p.local.AcquirePermit(ctx, r)
	d.Limit = limit
	return d, err
}

// RenewPermit implements concurrency.Store.
func (p *permitStore) RenewPermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	if ours, _ := p.local.RenewPermit(ctx, r); ours {
		return true, nil
	}
	return p.ask(ctx, r, p.permits.RenewPermit)
}

// ask asks the store about a permit that it has granted.
func (p *permitStore) ask(
	ctx context.Context, r concurrency.Request,
	call func(context.Context, concurrency.Request) (bool, error),
) (held bool, err error) {
	why := p.circuits.of(r.Key).do(ctx, func(ctx context.Context) error {
		held, err = call(ctx, r)
		return err
	})
	if why == nil {
		return held, nil
	}
	if err := callersError(ctx, why); err != nil {
		return false, err
	}
	return false, &degradedError{why}
}

// ReleasePermit implements concurrency.Store.
func (p *permitStore) ReleasePermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	if ours, _ := p.local.ReleasePermit(ctx, r); ours {
		_, _ = p.ask(ctx, r, p.permits.ReleasePermit) // it may have granted it, too late
		return true, nil
	}
	return p.ask(ctx, r, p.permits.ReleasePermit)
}

// WatchPermits implements concurrency.Store.
func (p *permitStore) WatchPermits(key string, wake chan<- struct{}) (stop func()) {
	store, local := p.permits.WatchPermits(key, wake), p.local.WatchPermits(key, wake)
	return func() {
		store()
		local()
	}
}
