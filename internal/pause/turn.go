package pause

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/await"
)

// fresh is how long after checking for a pause a request may be sent without checking again.
const fresh = 10 * time.Millisecond

// Wait returns when r may be sent. The requests of a key wait in the line of the limiter, and the
// first of them is denied while a pause lasts. So after a pause they are sent in their order, at
// the rate of the limits. If another pause began meanwhile, r waits again, after the others. The
// permit is the last to be acquired, because its TTL passes.
//
// There is no reservation if the request costs nothing, or Open sends it.
func (p *Pauses[R]) Wait(
	ctx context.Context, r R, key string, cost int64,
) (reservation *headgate.Reservation, permit *concurrency.Permit, err error) {
	if p.Waited != nil {
		defer func(begun time.Time) {
			if err == nil {
				p.Waited(r, time.Since(begun))
			}
		}(time.Now())
	}
	for cost > 0 {
		var checked atomic.Int64
		asks := context.WithValue(ctx, checkedKey{}, &checked)
		reservation, err := p.limiter.ReserveWait(asks, key, cost)
		if err = p.Failed(ctx, r, err); err != nil || reservation == nil {
			return nil, nil, err
		}
		permit, sends, err := p.use(ctx, r, key, time.Unix(0, checked.Load()))
		if sends {
			return reservation, permit, nil
		}
		// In the background, because the store may be slow or the context may have ended. If the
		// store cannot cancel it, the reservation stays charged.
		go func() {
			_ = reservation.Cancel(ctx)
			if permit != nil {
				_ = permit.Release(ctx)
			}
		}()
		if err != nil {
			return nil, nil, err
		}
	}
	for {
		left, err := p.Left(ctx, r, key)
		if deadline, ok := ctx.Deadline(); ok && left > time.Until(deadline) {
			err = &headgate.DeadlineError{Limit: Limit, Wait: left}
		}
		if err != nil || left == 0 {
			return nil, nil, err
		}
		if err := await.Sleep(ctx, left); err != nil {
			return nil, nil, err
		}
	}
}

// use waits for a permit, and reports whether r may be sent then.
func (p *Pauses[R]) use(
	ctx context.Context, r R, key string, checked time.Time,
) (permit *concurrency.Permit, sends bool, err error) {
	if p.Permits != nil {
		if permit, err = p.Permits.Wait(ctx, key); err != nil {
			err = p.Failed(ctx, r, err)
			return nil, err == nil, err
		}
	}
	if time.Since(checked) < fresh {
		return permit, true, nil
	}
	left, err := p.Left(ctx, r, key)
	return permit, err == nil && left == 0, err
}

// pausing is a store that refuses requests for tokens while their key is paused, with a
// [headgate.DeadlineError]. It reads the pause in the call that charges them, and writes the time
// of that to the checkedKey of the context.
type pausing struct {
	headgate.Store

	own *own
}

type checkedKey struct{}

// Take implements [headgate.Store].
func (s pausing) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if ctx.Value(checkedKey{}) == nil {
		return s.Store.Take(ctx, r)
	}
	ds := make([]headgate.Decision, 1)
	err := s.TakeAll(ctx, []headgate.Request{r}, ds)
	return ds[0], err
}

// TakeAll implements [headgate.Store].
func (s pausing) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) (err error) {
	checked, asks := ctx.Value(checkedKey{}).(*atomic.Int64)
	if !asks || rs[0].Cost <= 0 {
		return s.Store.TakeAll(ctx, rs, ds)
	}
	now, left := time.Now(), s.own.left(rs[0].Key)
	if left == 0 {
		left, err = s.take(ctx, rs, ds)
	}
	switch {
	case err != nil:
		return err
	case left > 0:
		return &headgate.DeadlineError{Limit: Limit, Wait: left}
	}
	checked.Store(now.UnixNano())
	return nil
}

// take takes rs, and gives back what was granted during a pause.
func (s pausing) take(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) (left time.Duration, err error) {
	all := make([]headgate.Decision, len(ds)+1)
	peek := headgate.Request{Key: rs[0].Key, Limit: Limit}
	err = s.Store.TakeAll(ctx, append(slices.Clip(rs), peek), all)
	left = all[copy(ds, all)].ResetAfter
	if err != nil || left == 0 || !headgate.Granted(rs, ds) {
		return left, err
	}
	back := slices.Clone(rs)
	for i := range back {
		back[i].Cost, back[i].MaxWait = -back[i].Cost, 0
		if ds[i].RetryAfter == 0 {
			back[i] = rs[i].Refund(rs[i].Cost)
		}
	}
	return left, s.Store.TakeAll(ctx, back, all[:len(ds)])
}
