package fallback

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// among is how many instances share a limit. It is 0 where none grants by its share: in another mode than Local, or
// while the number is unknown.
func (s *Store) among() int {
	if s.options.Mode != Local {
		return 0
	}
	return max(s.options.Instances(), 0)
}

// own is r under the share of one of so many instances. Of 0, who grant nothing by it, the share has the numbers of
// the limit itself.
func (s *Store) own(r headgate.Request, instances int) headgate.Request {
	r.Limit = s.shares.of(r.Limit, max(instances, 1))
	return r
}

// requests is room for those of one call.
type requests struct{ all []headgate.Request }

var rooms = sync.Pool{New: func() any { return new(requests) }}

// takeOwn is TakeAll of the local store under the shares of one of so many instances.
func (s *Store) takeOwn(ctx context.Context, rs []headgate.Request, ds []headgate.Decision, instances int) error {
	room, _ := rooms.Get().(*requests)
	defer func() {
		clear(room.all) // hold no key while idle
		rooms.Put(room)
	}()
	room.all = room.all[:0]
	for _, r := range rs {
		room.all = append(room.all, s.own(r, instances))
	}
	return s.options.Local.TakeAll(ctx, room.all, ds)
}

// takeAllInstead decides rs where the store cannot, and why says why not.
func (s *Store) takeAllInstead(ctx context.Context, rs []headgate.Request, ds []headgate.Decision, why error) (err error) {
	instances := s.among()
	if instances > 0 {
		if err := s.takeOwn(ctx, rs, ds, instances); err != nil {
			return err
		}
	}
	for i, r := range rs {
		if instances > 0 {
			ds[i], err = s.beyond(r, ds[i], why)
		} else {
			ds[i], err = s.blind(r, why)
		}
		if err != nil {
			return err
		}
	}
	if instances == 0 && headgate.Granted(rs, ds) {
		for i := range rs {
			s.tickets.note(&rs[i])
		}
	}
	return nil
}

// takeBlind is blind, and remembers what was granted.
func (s *Store) takeBlind(r headgate.Request, why error) (headgate.Decision, error) {
	d, err := s.blind(r, why)
	if err == nil && d.Within(r.MaxWait) {
		s.tickets.note(&r)
	}
	return d, err
}

// blind is the decision on r of who knows nothing.
func (s *Store) blind(r headgate.Request, why error) (headgate.Decision, error) {
	d := headgate.Decision{Limit: s.own(r, 0).Limit}
	if s.options.Mode == Open {
		d.Remaining = d.Limit.Capacity()
	}
	switch {
	case r.Ticket != 0 && r.Cost <= 0 && !s.tickets.knows(&r):
		return headgate.Decision{}, &undecidedError{why}
	case r.Cost > d.Limit.Capacity():
		d.RetryAfter = headgate.Never
	case s.options.Mode != Open && r.Cost >= 0:
		if r.MaxWait > 0 { // within which a denial might seem to be a turn
			return headgate.Decision{}, &undecidedError{why}
		}
		d.RetryAfter = s.wait()
		d.ResetAfter = d.RetryAfter
	}
	return d, nil
}

// beyond is d, the decision of this instance's share on r, unless that can never say what the
// limit would: then it may be asked again when the store is.
func (s *Store) beyond(r headgate.Request, d headgate.Decision, why error) (headgate.Decision, error) {
	switch {
	case d.RetryAfter != headgate.Never || r.Cost > r.Limit.Capacity():
		return d, nil
	case r.MaxWait > 0 || r.Ticket != 0:
		return headgate.Decision{}, &undecidedError{why}
	}
	d.RetryAfter = s.wait()
	return d, nil
}

// wait is the time until the store is asked again, in whole microseconds, and at least what it may
// take to answer.
func (s *Store) wait() time.Duration {
	d := s.changes.wait() + time.Microsecond - 1
	return max(d.Truncate(time.Microsecond), s.options.Timeout)
}
