// Package pause keeps the pauses that servers ask their clients for.
package pause

import (
	"cmp"
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// Store keeps the pauses of keys in a store, so that all processes that share it keep them. A
// pause is a token bucket that gains one token each microsecond: the tokens that it lacks are
// the microseconds that are left. So a pause ends by itself, at the same time for everyone.
type Store struct{ In headgate.Store }

// Longest is the longest pause: the capacity of the bucket.
const Longest = 365 * 24 * time.Hour

// Limit shares its keys with the limits of the user, so it has a name that none of those has.
var Limit = headgate.Per(1, time.Microsecond).
	Burst(Longest.Microseconds()).Named("httplimit.pause")

// Left returns the time until the pause of key is over, 0 if there is none.
func (p Store) Left(ctx context.Context, key string) (time.Duration, error) {
	d, err := p.In.Take(ctx, headgate.Request{Key: key, Limit: Limit})
	return d.ResetAfter, err
}

// Extend makes the pause of key last for d from now, unless it lasts longer already. Callers
// that extend it at the same time refund what is too much, so that pauses do not add up. The
// first of them refunds nothing, so the pause is at least as long as its own; it may be shorter
// than the longest of them.
func (p Store) Extend(ctx context.Context, key string, d time.Duration) error {
	d = d.Round(time.Millisecond)
	left, err := p.Left(ctx, key)
	if err != nil || left >= d {
		return err
	}
	r := headgate.Request{Key: key, Limit: Limit, Cost: (d - left).Microseconds()}
	taken, err := p.In.Take(ctx, r)
	tooMuch := (taken.ResetAfter - d).Microseconds()
	if err != nil || !taken.Allowed() || tooMuch <= 0 {
		return err
	}
	r.Cost = -min(r.Cost, tooMuch)
	_, err = p.In.Take(ctx, r)
	return err
}

// Pauses are the pauses of a client: in the store of its limits and, in case that is slow or
// unavailable, in this process. R is a request of the client.
type Pauses[R any] struct {
	Max     time.Duration // longer ones are shortened to it; 0: DefaultMax
	Open    bool          // ignores a store that is unavailable
	Observe func(r R, pause time.Duration, err error)
	Waited  func(r R, d time.Duration) // called before r is sent; or nil
	Permits *concurrency.Limiter       // or nil: a request that has a cost waits for one
	Period  time.Duration              // how long after its answer a request keeps its permit

	shared  Store
	own     own
	limiter *headgate.Limiter // whose store denies during a pause
}

// DefaultMax is the longest pause unless Max says otherwise.
const DefaultMax = time.Hour

// Init makes p ready for requests under the limits of l.
func (p *Pauses[R]) Init(l *headgate.Limiter) (err error) {
	if l == nil {
		return &headgate.InvalidError{
			Field: "limiter", Value: "nil", Want: "one made by headgate.NewLimiter",
		}
	}
	if p.Max < 0 || p.Max > Longest {
		return &headgate.InvalidError{
			Field: "MaxPause", Value: p.Max.String(),
			Want: "more than 0 and at most a year, or 0 for an hour",
		}
	}
	p.Max = cmp.Or(p.Max, DefaultMax)
	p.shared = Store{l.Store()}
	p.own.init()
	p.limiter, err = headgate.NewLimiterFunc(pausing{l.Store(), &p.own}, l.Limits)
	return err
}

// Left returns what is left of the pause of key.
func (p *Pauses[R]) Left(ctx context.Context, r R, key string) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	left, err := p.shared.Left(ctx, key)
	if err := p.Failed(ctx, r, err); err != nil {
		return 0, err
	}
	return max(left, p.own.left(key)), nil
}

// BackOff returns the pause after a response that refuses a request of key, and does not say for
// how long. It is 0 if the request was sent before a pause that has not ended.
func (p *Pauses[R]) BackOff(key string) time.Duration {
	return p.own.backOff(key, min(p.Max, lastBackOff))
}

// Passed notes that a response does not refuse a request of key.
func (p *Pauses[R]) Passed(key string) { p.own.passed(key) }

// Answered releases the permit of r, if it has one, and keeps the pause that the answer to r asks
// for, if d is above 0. It does so also if r was canceled meanwhile.
func (p *Pauses[R]) Answered(
	ctx context.Context, r R, key string, d time.Duration, permit *concurrency.Permit,
) {
	if d <= 0 && permit == nil {
		return
	}
	recording, cancel := Recording(ctx)
	defer cancel()
	if permit != nil {
		err := permit.ReleaseAfter(recording, p.Period)
		_ = p.Failed(ctx, r, err) // otherwise it expires
	}
	if d > 0 {
		d = min(d, p.Max)
		p.own.extend(key, d)
		p.observe(r, d, p.shared.Extend(recording, key, d))
	}
}

// Recording returns a context for what is recorded of a response, also if the request was canceled:
// the store may delay a response by 100 ms.
func Recording(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
}

// Failed returns an error of the store, or nil for one that Open ignores.
func (p *Pauses[R]) Failed(ctx context.Context, r R, err error) error {
	if !headgate.Unavailable(ctx, err) {
		return err
	}
	p.observe(r, 0, err)
	if p.Open {
		return nil
	}
	return err
}

func (p *Pauses[R]) observe(r R, pause time.Duration, err error) {
	if p.Observe != nil {
		p.Observe(r, pause, err)
	}
}
