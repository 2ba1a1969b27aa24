package fallback

import (
	"context"

	"github.com/headgate/headgate"
)

// Take implements headgate.Store.
//
// Without the store, the mode decides a request with MaxWait: Open grants it at once, Closed
// returns [ErrDegraded], and Local asks this instance's share. Local returns ErrDegraded, too, if
// the cost is more than the share ever holds.
//
// Without the store, Local charges a forced request to the share, whether or not it fits. Closed
// and Open charge nothing.
//
// A refund goes to the store, or to the share if the share decides at the moment. Without the
// store, Closed and Open accept a refund and drop it, so the store stays charged.
func (s *Store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if err := r.Validate(); err != nil {
		return headgate.Decision{}, err
	}
	var d headgate.Decision
	c := s.circuits.of(r.Key)
	why := c.do(ctx, func(ctx context.Context) (err error) {
		d, err = s.store.Take(ctx, r)
		return err
	})
	if why == nil {
		if d.Within(r.MaxWait) || r.Forced() {
			s.mirror(ctx, &r)
		}
		return d, nil
	}
	if err := callersError(ctx, why); err != nil {
		return headgate.Decision{}, err
	}
	s.degraded.Add(1)
	return s.takeDegraded(ctx, r, &failure{why, c})
}

// TakeAll implements headgate.Store. Either the store decides all requests, or all are decided
// without the store, as in Take. If the keys are on several servers of which one is known to fail,
// each server is asked by itself, and the mode decides in place of the one that fails.
func (s *Store) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	if s.circuits.server == nil {
		return s.takeAll(ctx, s.circuits.common, rs, ds)
	}
	order, indices := s.circuits.ofAll(rs)
	if len(order) != 1 {
		return s.takeSeveral(ctx, order, indices, rs, ds)
	}
	return s.takeAll(ctx, order[0], rs, ds)
}

// takeAll decides requests that have one circuit.
func (s *Store) takeAll(
	ctx context.Context, c *circuit, rs []headgate.Request, ds []headgate.Decision,
) error {
	why := c.do(ctx, func(ctx context.Context) error { return s.store.TakeAll(ctx, rs, ds) })
	if why == nil {
		s.mirrorAll(ctx, rs, ds)
		return nil
	}
	if err := callersError(ctx, why); err != nil {
		return err
	}
	s.degraded.Add(uint64(len(rs)))
	return s.takeAllDegraded(ctx, rs, ds, &failure{why, c})
}

// Reset implements headgate.Store. It always resets this instance's share. [ErrDegraded] means that
// the store may not have been reset.
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	why := s.circuits.of(key).do(ctx,
		func(ctx context.Context) error { return s.store.Reset(ctx, key, l) })
	if s.options.Mode == Local {
		if err := s.options.Local.Reset(ctx, key, s.shares.of(l, s.instances())); err != nil {
			return err
		}
	}
	if why == nil {
		return nil
	}
	if err := callersError(ctx, why); err != nil {
		return err
	}
	return &degradedError{why}
}

// mirrorAll charges this instance's share with what the store granted.
func (s *Store) mirrorAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) {
	granted := headgate.Granted(rs, ds)
	for i := range rs {
		if granted || rs[i].Forced() {
			s.mirror(ctx, &rs[i])
		}
	}
}

// mirror charges this instance's share with what the store charged, or refunds it. So when the
// store fails, the instance has what is left of its share, and not a fresh one. A charge of more
// than the share holds, forced or not, empties it. An error of the local store is ignored: then the
// share is fuller than it should be, but still no more than a share.
func (s *Store) mirror(ctx context.Context, r *headgate.Request) {
	if s.options.Mode != Local || r.Cost == 0 {
		return
	}
	own := headgate.Request{
		Key: r.Key, Limit: s.shares.of(r.Limit, s.instances()), Cost: r.Cost, At: r.At,
	}
	d, err := s.options.Local.Take(ctx, own)
	if err == nil && !d.Allowed() && d.Remaining > 0 {
		own.Cost = d.Remaining
		_, _ = s.options.Local.Take(ctx, own)
	}
}
