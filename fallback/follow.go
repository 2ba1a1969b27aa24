package fallback

import (
	"context"

	"github.com/headgate/headgate"
)

// follow charges this instance's share with what the store decided, so that when the store fails the
// share is what this instance has left of it, and not a fresh one. A grant of more than the share holds
// drains it.
//
// A ticket that the store does not know may have been granted here while it was gone.
func (s *Store) follow(ctx context.Context, r headgate.Request, d headgate.Decision) headgate.Decision {
	switch {
	case s.options.Mode == Open:
		if unknown(&r, &d) {
			if own, err := s.takeBlind(r, ErrDegraded); err == nil {
				return own
			}
		}
	case s.options.Mode != Local:
	case unknown(&r, &d):
		if own, err := s.options.Local.Take(ctx, s.own(r, s.among())); err == nil && !unknown(&r, &own) {
			return own
		}
	case d.Within(r.MaxWait):
		s.charge(ctx, r)
	}
	return d
}

// followAll is follow for requests that were decided together.
func (s *Store) followAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) {
	switch {
	case s.options.Mode == Open:
		s.followOpen(ctx, rs, ds)
	case s.options.Mode != Local:
	case !allKnown(rs, ds):
		own := make([]headgate.Decision, len(ds))
		if err := s.takeOwn(ctx, rs, own, s.among()); err == nil {
			if allKnown(rs, own) {
				copy(ds, own)
			}
		}
	case headgate.Granted(rs, ds):
		for _, r := range rs {
			s.charge(ctx, r)
		}
	}
}

// followOpen answers rs, of which the store does not know the tickets, if all of them were granted here. Then
// nothing of it counts anywhere. If one is about anything else, the answer is the store's.
func (s *Store) followOpen(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) {
	if allKnown(rs, ds) {
		return
	}
	for i := range rs {
		if !s.tickets.knows(&rs[i]) {
			return
		}
	}
	own := make([]headgate.Decision, len(ds))
	if s.takeAllInstead(ctx, rs, own, ErrDegraded) == nil {
		copy(ds, own)
	}
}

// allKnown says whether the tickets of all rs are.
func allKnown(rs []headgate.Request, ds []headgate.Decision) bool {
	for i := range rs {
		if unknown(&rs[i], &ds[i]) {
			return false
		}
	}
	return true
}

// unknown says whether r is about a ticket that was not found.
func unknown(r *headgate.Request, d *headgate.Decision) bool {
	return r.Ticket != 0 && r.Cost <= 0 && d.RetryAfter == headgate.Never
}

// charge charges this instance's share with a grant of the store, or gives back what it did, also while
// nobody knows what the share is: it keeps what was consumed when somebody does. A
// local store that cannot say leaves the share fuller than it should be, as it would be without.
func (s *Store) charge(ctx context.Context, r headgate.Request) {
	if r.Cost == 0 {
		return
	}
	r = s.own(r, s.among())
	r.MaxWait, r.Ticket, r.Hold = 0, 0, 0
	d, err := s.options.Local.Take(ctx, r)
	if err == nil && !d.Allowed() && d.Remaining > 0 {
		r.Cost = d.Remaining
		_, _ = s.options.Local.Take(ctx, r)
	}
}
