package fallback

import (
	"context"

	"github.com/headgate/headgate"
)

// Take implements headgate.Store. It returns [ErrDegraded] where the store could not say and nothing else could, either:
//   - of a MaxWait, where nothing is granted, and for a cost that the limit grants but this instance's share never does;
//   - of a take-back by a ticket that was not granted here meanwhile: only the store
//     knows it, so try again. What was granted here is taken back here, also
//     when the store answers again.
//
// A plain refund is made where decisions are made. Where neither the store nor a share makes
// them it is granted and lost: the store stays charged.
func (s *Store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if err := r.Validate(); err != nil {
		return headgate.Decision{}, err
	}
	var d headgate.Decision
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		d, err = s.store.Take(ctx, r)
		return err
	})
	switch {
	case err == nil:
		return s.follow(ctx, r, d), nil
	case final(err):
		return headgate.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return headgate.Decision{}, err
	}
	s.instead.Add(1)
	instances := s.among()
	if instances == 0 {
		return s.takeBlind(r, err)
	}
	d, failed := s.options.Local.Take(ctx, s.own(r, instances))
	if failed != nil {
		return headgate.Decision{}, failed
	}
	return s.beyond(r, d, err)
}

// TakeAll implements headgate.Store. The store decides all the requests, or none: then they are
// decided here as by Take.
func (s *Store) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	err := s.ask(ctx, func(ctx context.Context) error { return s.store.TakeAll(ctx, rs, ds) })
	switch {
	case err == nil:
		s.followAll(ctx, rs, ds)
		return nil
	case final(err):
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.instead.Add(uint64(len(rs)))
	return s.takeAllInstead(ctx, rs, ds, err)
}

// Reset implements headgate.Store. What counts here is forgotten in any case; [ErrDegraded] says that
// the store may not have forgotten.
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	err := s.ask(ctx, func(ctx context.Context) error { return s.store.Reset(ctx, key, l) })
	if s.options.Mode == Local {
		if err := s.options.Local.Reset(ctx, key, s.shares.of(l, max(s.among(), 1))); err != nil {
			return err
		}
	}
	if err != nil && !final(err) {
		return &undecidedError{err}
	}
	return err
}
