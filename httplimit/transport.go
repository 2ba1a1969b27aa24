package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// TransportOptions of [NewTransport]. The zero TransportOptions limits each host that is
// called, at a cost of 1 a request, and calls nobody while the store cannot say.
type TransportOptions struct {
	// Base makes the calls. Default: http.DefaultTransport.
	Base http.RoundTripper

	// Key says what a request counts against, such as an account of the API. Default:
	// [TargetHost].
	Key KeyFunc

	// Cost says how many tokens a request takes. 0 waits for the end of a pause and for no
	// turn; less than 0, such as the ContentLength of a body of unknown length, counts as
	// 1. Default: 1.
	Cost func(*http.Request) int64

	// MaxPause is the longest pause that an answer can ask for: a longer one is cut to
	// it. At most a year. Default: an hour.
	MaxPause time.Duration

	// RetryAfterOnly pauses for Retry-After alone, and for none of the fields that tell
	// what remains of a limit. Set it for a server whose fields are wrong, or
	// coarser than its limits: they are in whole seconds.
	RetryAfterOnly bool

	// FailOpen calls without a turn while the store cannot say, and keeps the pauses that
	// this process was asked for. Default: RoundTrip returns the error of the store, as
	// [headgate.Limiter.Wait] does, because the limit is somebody else's.
	FailOpen bool

	// Observe is told of each pause that an answer asks for, and of each error of the
	// store; the pause is 0 if the store was not asked to keep one. Many goroutines call
	// it, and if the store takes its time, with a copy of the request after RoundTrip has
	// returned. Default: nobody.
	Observe func(r *http.Request, pause time.Duration, err error)
}

// DefaultMaxPause is the MaxPause of the zero [TransportOptions].
const DefaultMaxPause = time.Hour

// NewTransport makes an http.RoundTripper that waits for its turn before it calls somebody
// else's API. It returns a [headgate.InvalidError] if l is nil or the options are wrong.
func NewTransport(l *headgate.Limiter, o TransportOptions) (*Transport, error) {
	switch {
	case l == nil:
		return nil, &headgate.InvalidError{Field: "limiter", Value: "nil", Want: "one made by headgate.NewLimiter"}
	case o.MaxPause < 0 || o.MaxPause > longestPause:
		return nil, &headgate.InvalidError{Field: "MaxPause", Value: o.MaxPause.String(), Want: "more than 0 and at most a year, or 0 for an hour"}
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Key == nil {
		o.Key = TargetHost
	}
	if o.MaxPause == 0 {
		o.MaxPause = DefaultMaxPause
	}
	return &Transport{
		options: o,
		limiter: l,
		shared:  pauses{l.Store()},
		own:     pauses{headgate.NewMemory(ownPauses)},
		heeding: make(chan struct{}, heeders),
	}, nil
}

// ownPauses is how many keys a process keeps pauses of by itself.
const ownPauses = 1 << 16

// Transport is an http.RoundTripper that waits for its turn: for the limits of a
// headgate.Limiter, by [headgate.Limiter.ReserveFor], and for the end of pauses. Make one with
// [NewTransport] and put it into an http.Client:
//
//	client := &http.Client{Transport: transport}
//
// It waits with the context of the request, which the Timeout of an http.Client is part
// of. A turn or the end of a pause that would come after the deadline fails at once, by an
// error that is a context.DeadlineExceeded (see [headgate.DeadlineError]), and charges
// nothing. Redirects are requests of their own.
//
// # Pauses
//
// An answer can ask for a pause, and then the next request of the key waits instead of being
// refused, for the longest of the pauses that were asked for. Who asks for one:
//
//   - Retry-After, in seconds or as a date, of an answer with any status but those of
//     success: there it says when to look again for one result, as with 202. With a redirect
//     it is meant for the request that follows, which waits if it has the same key.
//   - RateLimit, as in draft-ietf-httpapi-ratelimit-headers-10: t of a limit with r=0,
//     whatever the status is.
//   - X-RateLimit-Reset with an X-RateLimit-Remaining of 0, also without the X- and as
//     X-Rate-Limit-: in seconds from now, or if it is 10^9 or more in seconds or
//     milliseconds since 1970, as GitHub sends it.
//
// The first of these that is there counts. Dates are compared with the Date of the answer.
// Values that cannot be read, and times that have passed, ask for nothing.
//
// Pauses lie in the limiter's store, under the limit named "httplimit.pause" of the key, so
// that all who share the store keep them, and a pause that two were asked for does not last
// longer. No limit of the limiter may have that name. This process keeps what it was asked
// for at once: for a store that takes longer than 100 ms, or than the context of the request
// lasts, the answer is not held back, and the store is asked for up to 5 seconds behind it.
//
// The answer is returned as it is. Nothing is sent again: who wants to retry does so by
// calling again, and waits.
//
// # Round trips to the store
//
// A request asks the store for a pause and for its turn, and once more for a pause if
// that took more than 10 ms. An answer that asks for a pause costs two more.
type Transport struct {
	options TransportOptions
	limiter *headgate.Limiter
	shared  pauses        // of all who share the store
	own     pauses        // of this process, for when the store cannot say, or not yet
	heeding chan struct{} // held by those who ask the store to keep a pause
	lines   pauseLines
}

// RoundTrip waits for the turn of r, and calls.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	key := t.options.Key(r)
	if err := t.wait(r, key); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	answer, err := t.options.Base.RoundTrip(r)
	if err == nil {
		t.heed(r, key, answer)
	}
	return answer, err
}

// CloseIdleConnections closes those of the Base.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.options.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// settleIn is for how long after a turn it can be given back: while the pause is looked at.
const settleIn = 200 * time.Millisecond

// fresh is for how long a look at a pause is as good as another one.
const fresh = 10 * time.Millisecond

// wait returns when r may be sent. The turn is booked after the pause, so that those who
// waited for that do not all have their turns behind them; and a turn that came into
// another pause is given back.
func (t *Transport) wait(r *http.Request, key string) error {
	ctx, cost := r.Context(), costOf(r, t.options.Cost)
	for {
		if err := t.waitForPause(r, key); err != nil || cost == 0 {
			return err
		}
		looked := time.Now()
		turn, err := t.limiter.ReserveFor(ctx, key, cost, settleIn)
		if err != nil {
			return t.failed(ctx, r, err)
		}
		if err := turn.Wait(ctx); err != nil {
			t.giveBack(r, turn)
			return err
		}
		if time.Since(looked) < fresh {
			return nil
		}
		left, err := t.pause(r, key)
		if err == nil && left == 0 {
			return nil
		}
		t.giveBack(r, turn)
		if err != nil {
			return err
		}
	}
}

// giveBack takes back a turn in which nothing is sent, behind the caller if that has no more
// time. If the store cannot, it is charged for nothing.
func (t *Transport) giveBack(r *http.Request, turn *headgate.Reservation) {
	done := inTheBackground(r.Context(), turn.Cancel)
	while, stop := context.WithTimeout(r.Context(), heedWhile)
	defer stop()
	t.tell(while, r, 0, done)
}

// waitForPause returns when the pause of key is over, one caller after the other.
func (t *Transport) waitForPause(r *http.Request, key string) error {
	left, err := t.pause(r, key)
	if err != nil || left == 0 && !t.lines.busy(key) {
		return err
	}
	ctx := r.Context()
	if err := inTime(ctx, left); err != nil {
		return err
	}
	if err := t.lines.enter(ctx, key); err != nil {
		return err
	}
	defer t.lines.leave(key)
	for {
		left, err := t.pause(r, key)
		if err != nil || left == 0 {
			return err
		}
		if err := inTime(ctx, left); err != nil {
			return err
		}
		if err := sleep(ctx, left); err != nil {
			return err
		}
	}
}

// inTime finds fault with a pause that lasts beyond the deadline.
func inTime(ctx context.Context, pause time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && pause > time.Until(deadline) {
		return &headgate.DeadlineError{Limit: lookAtPause, Wait: pause}
	}
	return nil
}

// pause is what is left of the pause of key.
func (t *Transport) pause(r *http.Request, key string) (time.Duration, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	left, err := t.shared.left(ctx, key)
	if err != nil {
		if err := t.failed(ctx, r, err); err != nil {
			return 0, err
		}
	}
	own, err := t.own.left(ctx, key) // also while the store is still being asked to keep it
	return max(left, own), err
}

// failed is what to return for an error of asking the store: nothing, if it cannot say and
// the request is to be sent then.
func (t *Transport) failed(ctx context.Context, r *http.Request, err error) error {
	_, late := errors.AsType[*headgate.DeadlineError](err)
	_, wrong := errors.AsType[*headgate.InvalidError](err)
	if late || wrong || ctx.Err() != nil {
		return err
	}
	t.observe(r, 0, err)
	if t.options.FailOpen {
		return nil
	}
	return err
}

func (t *Transport) observe(r *http.Request, pause time.Duration, err error) {
	if t.options.Observe != nil {
		t.options.Observe(r, pause, err)
	}
}

const (
	// heedIn is how long the store may take to keep a pause, or to take a turn back.
	heedIn = 5 * time.Second

	// heedWhile is for how much of that an answer is held back.
	heedWhile = 100 * time.Millisecond

	// heeders is how many pauses a store that takes its time is asked to keep at once.
	heeders = 256
)

var errHeeding = errors.New("httplimit: the store is still being asked to keep other pauses; this process alone keeps this one")

// heed keeps the pause that answer asks for, also if r was given up meanwhile: at once in
// this process, and for all in the store, for which the answer is held back only a little.
func (t *Transport) heed(r *http.Request, key string, answer *http.Response) {
	pause := min(requestedPause(answer.StatusCode, answer.Header, time.Now(), t.options.RetryAfterOnly), t.options.MaxPause)
	if pause <= 0 {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	_ = t.own.prolong(ctx, key, pause) // cannot fail
	while, stop := context.WithTimeout(r.Context(), heedWhile)
	defer stop()
	if !enter(while, t.heeding) {
		t.observe(r, pause, errHeeding)
		return
	}
	kept := inTheBackground(ctx, func(ctx context.Context) error {
		defer func() { <-t.heeding }()
		return t.shared.prolong(ctx, key, pause)
	})
	t.tell(while, r, pause, kept)
}

// tell tells what became of asking the store: now, or behind the caller if ctx ends before.
func (t *Transport) tell(ctx context.Context, r *http.Request, pause time.Duration, done <-chan error) {
	tell := func(r *http.Request, err error) {
		if pause > 0 || err != nil {
			t.observe(r, pause, err)
		}
	}
	select {
	case err := <-done:
		tell(r, err)
	case <-ctx.Done():
		r := r.Clone(context.WithoutCancel(ctx)) // its owner may use it anew
		go func() { tell(r, <-done) }()
	}
}

// enter takes a place among as many as there is room for, waiting until ctx ends.
func enter(ctx context.Context, places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// inTheBackground asks the store what is to be asked whatever becomes of the caller.
func inTheBackground(ctx context.Context, ask func(ctx context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), heedIn)
		defer stop()
		var err error
		defer func() {
			if p := recover(); p != nil { // nobody is there to deal with it
				err = fmt.Errorf("httplimit: the store panicked: %v", p)
			}
			done <- err
		}()
		err = ask(ctx)
	}()
	return done
}

// TargetHost makes the key of the host that a request is sent to, with its port unless that
// is the default of the scheme. Upper case and a dot at the end make no difference.
func TargetHost(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	host, port := r.URL.Hostname(), r.URL.Port()
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch {
	case port == "", strings.EqualFold(r.URL.Scheme, "http") && port == "80", strings.EqualFold(r.URL.Scheme, "https") && port == "443":
		return tagged("host:", host)
	}
	return tagged("host:", host+":"+port)
}
