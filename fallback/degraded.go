package fallback

import (
	"context"
	"math/bits"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limitmap"
)

// instances is how many instances share a limit. It is 0 if this instance has no share: in another
// mode than Local, or while the number is unknown.
func (s *Store) instances() int {
	if s.options.Mode != Local {
		return 0
	}
	return max(s.options.Instances(), 0)
}

// failure is why a call got no answer of the store, and the circuit that says when to call again.
type failure struct {
	why error
	of  *circuit
}

// takeDegraded decides r without the store.
func (s *Store) takeDegraded(
	ctx context.Context, r headgate.Request, f *failure,
) (headgate.Decision, error) {
	instances := s.instances()
	if instances == 0 {
		return s.decideBlindly(&r, f)
	}
	own := s.ofShare(r, instances)
	d, err := s.options.Local.Take(ctx, own)
	if err != nil {
		return headgate.Decision{}, err
	}
	return s.judge(&r, d, f)
}

func (s *Store) takeAllDegraded(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision, f *failure,
) (err error) {
	instances := s.instances()
	if instances == 0 {
		for i := 0; i < len(rs) && err == nil; i++ {
			ds[i], err = s.decideBlindly(&rs[i], f)
		}
		return err
	}
	own := make([]headgate.Request, len(rs))
	for i, r := range rs {
		own[i] = s.ofShare(r, instances)
	}
	err = s.options.Local.TakeAll(ctx, own, ds)
	for i := 0; i < len(rs) && err == nil; i++ {
		ds[i], err = s.judge(&rs[i], ds[i], f)
	}
	return err
}

// ofShare is r at this instance's share. Its headroom is the same part of the share, rounded up.
func (s *Store) ofShare(r headgate.Request, instances int) headgate.Request {
	whole := r.Limit.Capacity()
	r.Limit = s.shares.of(r.Limit, instances)
	if r.Headroom > 0 && r.Headroom <= whole {
		high, low := bits.Mul64(uint64(r.Headroom), uint64(r.Limit.Capacity()))
		quotient, rest := bits.Div64(high, low, uint64(whole))
		r.Headroom = int64(quotient + min(rest, 1))
	}
	return r
}

// decideBlindly decides r without any state.
func (s *Store) decideBlindly(r *headgate.Request, f *failure) (headgate.Decision, error) {
	d := headgate.Decision{Limit: s.shares.of(r.Limit, 0)}
	open := s.options.Mode == Open
	if open && (!r.Force || r.Cost <= d.Limit.Capacity()) {
		d.Remaining = d.Limit.Capacity()
	}
	switch {
	case r.Needs() > d.Limit.Capacity():
		d.RetryAfter = headgate.Never
	case !open && r.Cost >= 0:
		return postpone(r, d, f)
	}
	return d, nil
}

// judge returns d, the decision of this instance's share on r. It postpones r if its cost fits the
// limit but never the share, with its headroom.
func (s *Store) judge(
	r *headgate.Request, d headgate.Decision, f *failure,
) (headgate.Decision, error) {
	if d.RetryAfter == headgate.Never && r.Cost >= 0 && r.Needs() <= r.Limit.Capacity() {
		d.Limit = s.unknown.of(r.Limit, 0)
		return postpone(r, d, f)
	}
	return d, nil
}

// postpone denies r until the store is called again. With a MaxWait that wait could be taken for a
// start time, so then it is an error.
func postpone(
	r *headgate.Request, d headgate.Decision, f *failure,
) (headgate.Decision, error) {
	if r.MaxWait > 0 {
		return headgate.Decision{}, &degradedError{f.why}
	}
	d.RetryAfter = f.of.retryAfter()
	d.ResetAfter = max(d.ResetAfter, d.RetryAfter)
	return d, nil
}

// shares finds the share of a limit for one number of instances. Another number starts a new map.
type shares struct{ last atomic.Pointer[sharesOfOne] }

type sharesOfOne struct {
	instances int
	kept      *limitmap.Map[headgate.Limit, headgate.Limit]
}

const maxShares = 1000

// of returns the share of l. If there are 0 instances, it has the numbers of l, and is marked as
// degraded all the same.
func (s *shares) of(l headgate.Limit, instances int) headgate.Limit {
	last := s.last.Load()
	if last == nil || last.instances != instances {
		share := func(l headgate.Limit) headgate.Limit { return l.Share(instances) }
		last = &sharesOfOne{instances, limitmap.New(maxShares, share)}
		s.last.Store(last)
	}
	return last.kept.Of(l)
}
