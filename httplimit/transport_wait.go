package httplimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/pause"
)

// fresh is how long after checking for a pause a request may be sent without checking again.
const fresh = 10 * time.Millisecond

// wait returns when r may be sent. It reserves after the pause, because all requests that
// waited for the pause would otherwise have start times in the past at its end. If another
// pause began before the start time, it waits and reserves again. The permit is the last to be
// acquired, because its TTL passes.
func (t *Transport) wait(
	r *http.Request, key string, cost int64,
) (*headgate.Reservation, *concurrency.Permit, error) {
	for {
		reservation, checked, err := t.reserve(r, key, cost)
		if err != nil || reservation == nil {
			return nil, nil, err
		}
		permit, sends, err := t.use(r, key, reservation, checked)
		if sends || err != nil {
			return reservation, permit, err
		}
	}
}

// reserve waits until the pause of key is over, one request after the other, and reserves. There is
// no reservation if the request costs nothing, or FailOpen sends it. checked is when there was no
// pause.
func (t *Transport) reserve(
	r *http.Request, key string, cost int64,
) (reservation *headgate.Reservation, checked time.Time, err error) {
	ctx := r.Context()
	left, err := t.pauses.Left(ctx, r, key)
	if err == nil && (left > 0 || t.lines.Callers(key) > 0) {
		if err := pause.EndsInTime(ctx, left); err != nil {
			return nil, checked, err
		}
		_, leave, err := t.lines.Enter(ctx, key)
		if err != nil {
			return nil, checked, err
		}
		defer leave() // only at the end: the next one of the line would reserve before
		if err := t.pauses.Wait(ctx, r, key); err != nil {
			return nil, checked, err
		}
	}
	if err != nil || cost == 0 {
		return nil, checked, err
	}
	checked = time.Now()
	reservation, err = t.limiter.Reserve(ctx, key, cost)
	if errors.Is(err, headgate.ErrNoBooking) {
		reservation, err = t.poll(ctx, key, cost)
	}
	if err != nil {
		return nil, checked, t.pauses.Failed(ctx, r, err)
	}
	return reservation, checked, nil
}

// poll reserves at a store that does not book ahead: it asks again after each RetryAfter.
func (t *Transport) poll(
	ctx context.Context, key string, cost int64,
) (*headgate.Reservation, error) {
	for {
		reservation, err := t.limiter.ReserveNow(ctx, key, cost)
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
func (t *Transport) use(
	r *http.Request, key string, reservation *headgate.Reservation, checked time.Time,
) (permit *concurrency.Permit, sends bool, err error) {
	ctx := r.Context()
	defer func() {
		if !sends {
			// In the background, because the store may be slow or the context may have ended. If
			// the store cannot cancel it, the reservation stays charged.
			go func() {
				_ = reservation.Cancel(context.WithoutCancel(ctx))
				if permit != nil {
					_ = permit.Release(ctx) // even if ctx has ended
				}
			}()
		}
	}()
	if err := reservation.Wait(ctx); err != nil {
		return nil, false, err
	}
	if t.options.Permits != nil {
		if permit, err = t.options.Permits.Wait(ctx, key); err != nil {
			err = t.pauses.Failed(ctx, r, err)
			return nil, err == nil, err
		}
	}
	if time.Since(checked) < fresh {
		return permit, true, nil
	}
	left, err := t.pauses.Left(ctx, r, key)
	return permit, err == nil && left == 0, err
}

// once returns a copy of r that http.Transport does not send again if a connection breaks.
func once(r *http.Request) *http.Request {
	r = r.WithContext(r.Context())
	r.GetBody = nil
	none := r.Body == nil || r.Body == http.NoBody
	if none && slices.Contains([]string{"", "GET", "HEAD", "OPTIONS"}, r.Method) {
		r.Body = io.NopCloser(strings.NewReader("")) // HTTP/1.1 sends none, HTTP/2 an empty one
	}
	return r
}

// answered releases the permit of r, which has arrived if there is a response, and keeps the pause
// that the response asks for. It does so also if r was canceled meanwhile.
func (t *Transport) answered(
	r *http.Request, key string, response *http.Response, permit *concurrency.Permit,
) {
	requested := requestedPause(response.StatusCode, response.Header, time.Now())
	if requested <= 0 && permit == nil {
		return
	}
	ctx, cancel := pause.Recording(r.Context())
	defer cancel()
	recorded := false
	defer func() {
		if !recorded { // after a panic of Observe, nobody else closes it
			_ = response.Body.Close()
		}
	}()
	if permit != nil {
		err := permit.ReleaseAfter(ctx, t.options.Period)
		_ = t.pauses.Failed(r.Context(), r, err) // otherwise it expires
	}
	if requested > 0 {
		t.pauses.Extend(ctx, r, key, requested)
	}
	recorded = true
}
