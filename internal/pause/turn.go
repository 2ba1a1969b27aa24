package pause

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/await"
)

// fresh is how long after checking for a pause a request may be sent without checking again.
const fresh = 10 * time.Millisecond

// Wait returns when r may be sent. It reserves after a pause, because all requests that waited for
// the pause would otherwise have start times in the past at its end. If another pause began before
// the start time, it waits and reserves again. The permit is the last to be acquired, because its
// TTL passes.
//
// There is no reservation if the request costs nothing, or FailOpen sends it.
func (p *Pauses[R]) Wait(
	ctx context.Context, r R, key string, cost int64,
) (*headgate.Reservation, *concurrency.Permit, error) {
	for {
		reservation, checked, err := p.reserve(ctx, r, key, cost)
		if err != nil || reservation == nil {
			return nil, nil, err
		}
		permit, sends, err := p.use(ctx, r, key, reservation, checked)
		if sends || err != nil {
			return reservation, permit, err
		}
	}
}

// reserve reserves when there is no pause of key, and returns when there was none. Requests that
// wait for a pause do so one after the other.
func (p *Pauses[R]) reserve(
	ctx context.Context, r R, key string, cost int64,
) (*headgate.Reservation, time.Time, error) {
	left, err := p.own.Left(ctx, key)
	for first := false; err == nil; {
		if left == 0 && (first || p.lines.Callers(key) == 0) {
			checked := time.Now()
			var b *headgate.Reservation
			if b, left, err = p.book(ctx, r, key, cost); err != nil || left == 0 {
				return b, checked, err
			}
		}
		end := time.Now().Add(left)
		if err := EndsInTime(ctx, left); err != nil {
			return nil, end, err
		}
		if !first {
			_, leave, err := p.lines.Enter(ctx, key)
			if err != nil {
				return nil, end, err
			}
			defer leave() // only at the end: the next one of the line would reserve before
			first = true
		}
		if err := await.Sleep(ctx, time.Until(end)); err != nil {
			return nil, end, err
		}
		left, err = p.Left(ctx, r, key)
	}
	return nil, time.Time{}, err
}

// book reserves, and returns what is left of the pause of key. If there is a pause, and after a
// panic of Observe, it cancels the reservation.
func (p *Pauses[R]) book(
	ctx context.Context, r R, key string, cost int64,
) (kept *headgate.Reservation, left time.Duration, err error) {
	var b *headgate.Reservation
	defer func() {
		if b != nil && kept == nil {
			await.Do(ctx, func() { _ = b.Cancel(ctx) }) // after an error it stays charged
		}
	}()
	read := unread // by a call that goes on if ctx ends: not to be looked at after an error
	if cost > 0 {
		reads := context.WithValue(ctx, leftKey{}, &read)
		b, err = p.limiter.Reserve(reads, key, cost)
		if errors.Is(err, headgate.ErrNoBooking) {
			b, err = p.poll(reads, key, cost)
		}
	}
	switch {
	case err != nil:
	case read != unread:
		left = read
	default:
		left, err = p.shared.Left(ctx, key)
	}
	if err = p.Failed(ctx, r, err); err == nil && left == 0 {
		kept = b
	}
	return kept, left, err
}

// poll reserves at a store that does not book ahead: it asks again after each RetryAfter.
func (p *Pauses[R]) poll(
	ctx context.Context, key string, cost int64,
) (*headgate.Reservation, error) {
	for {
		reservation, err := p.limiter.ReserveNow(ctx, key, cost)
		late, denied := errors.AsType[*headgate.DeadlineError](err)
		deadline, ok := ctx.Deadline()
		if !denied || late.Wait == headgate.Never || ok && late.Wait > time.Until(deadline) {
			return reservation, err
		}
		if err := await.Sleep(ctx, late.Wait); err != nil {
			return nil, err
		}
	}
}

// use waits for the start of the reservation and for a permit, and reports whether r may be sent
// then. If not, and after a panic of Observe, it cancels the reservation and releases the permit.
func (p *Pauses[R]) use(
	ctx context.Context, r R, key string, reservation *headgate.Reservation, checked time.Time,
) (permit *concurrency.Permit, sends bool, err error) {
	defer func() {
		if !sends {
			// In the background, because the store may be slow or the context may have ended. If
			// the store cannot cancel it, the reservation stays charged.
			go func() {
				_ = reservation.Cancel(ctx) // even if ctx has ended
				if permit != nil {
					_ = permit.Release(ctx) // likewise
				}
			}()
		}
	}()
	if err := reservation.Wait(ctx); err != nil {
		return nil, false, err
	}
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

// reading is a store that reads the pause of a key in the call that charges it. It writes what is
// left to the leftKey of the context.
type reading struct{ headgate.Store }

type leftKey struct{}

// unread is what is left of a pause that was not read.
const unread time.Duration = -1

// Take implements [headgate.Store].
func (s reading) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if ctx.Value(leftKey{}) == nil {
		return s.Store.Take(ctx, r)
	}
	ds := make([]headgate.Decision, 1)
	err := s.TakeAll(ctx, []headgate.Request{r}, ds)
	return ds[0], err
}

// TakeAll implements [headgate.Store].
func (s reading) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	left, ok := ctx.Value(leftKey{}).(*time.Duration)
	if !ok {
		return s.Store.TakeAll(ctx, rs, ds)
	}
	all := make([]headgate.Decision, len(ds)+1)
	peek := headgate.Request{Key: rs[0].Key, Limit: Limit}
	err := s.Store.TakeAll(ctx, append(slices.Clip(rs), peek), all)
	*left = all[copy(ds, all)].ResetAfter
	return err
}
