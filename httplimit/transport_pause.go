package httplimit

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// pauses keeps the pauses of keys in a store, so that all processes that share it keep them. A
// pause is a token bucket that gains one token each microsecond: the tokens that it lacks are
// the microseconds that are left. So a pause ends by itself, at the same time for everyone.
type pauses struct{ store headgate.Store }

// longestPause is the capacity of the bucket.
const longestPause = 365 * 24 * time.Hour

// pauseLimit shares its keys with the limits of the user, so it has a name that none of those has.
var pauseLimit = headgate.Per(1, time.Microsecond).
	Burst(longestPause.Microseconds()).Named("httplimit.pause")

// left returns the time until the pause of key is over, 0 if there is none.
func (p pauses) left(ctx context.Context, key string) (time.Duration, error) {
	d, err := p.store.Take(ctx, headgate.Request{Key: key, Limit: pauseLimit})
	return d.ResetAfter, err
}

// extend makes the pause of key last for d from now, unless it lasts longer already. Callers
// that extend it at the same time refund what is too much, so that pauses do not add up. The
// first of them refunds nothing, so the pause is at least as long as its own; it may be shorter
// than the longest of them.
func (p pauses) extend(ctx context.Context, key string, d time.Duration) error {
	d = d.Round(time.Millisecond)
	left, err := p.left(ctx, key)
	if err != nil || left >= d {
		return err
	}
	r := headgate.Request{Key: key, Limit: pauseLimit, Cost: (d - left).Microseconds()}
	taken, err := p.store.Take(ctx, r)
	tooMuch := (taken.ResetAfter - d).Microseconds()
	if err != nil || !taken.Allowed() || tooMuch <= 0 {
		return err
	}
	r.Cost = -min(r.Cost, tooMuch)
	_, err = p.store.Take(ctx, r)
	return err
}

// pauseLeft returns what is left of the pause of key, in the store or in this process.
func (t *Transport) pauseLeft(r *http.Request, key string) (time.Duration, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	left, err := t.shared.left(ctx, key)
	if err != nil {
		if err := t.failed(r, err); err != nil {
			return 0, err
		}
	}
	own, err := t.own.left(ctx, key)
	return max(left, own), err
}

// maxRecording is how long calls of the store may delay a response.
const maxRecording = 100 * time.Millisecond

// answered releases the permit of r, which has arrived if there is a response, and keeps the pause
// that the response asks for. It does so also if r was canceled meanwhile.
func (t *Transport) answered(
	r *http.Request, key string, response *http.Response, permit *concurrency.Permit,
) {
	pause := min(t.options.MaxPause,
		requestedPause(response.StatusCode, response.Header, time.Now()))
	if pause <= 0 && permit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), maxRecording)
	defer cancel()
	recorded := false
	defer func() {
		if !recorded { // after a panic of Observe, nobody else closes it
			_ = response.Body.Close()
		}
	}()
	if permit != nil {
		_ = t.failed(r, permit.ReleaseAfter(ctx, t.options.Period)) // otherwise it expires
	}
	if pause > 0 {
		// A Memory with room for the key; otherwise the store has it.
		_ = t.own.extend(ctx, key, pause)
		t.observe(r, pause, t.shared.extend(ctx, key, pause))
	}
	recorded = true
}
