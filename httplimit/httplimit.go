// Package httplimit limits the requests of net/http servers and clients.
//
// [New] makes a middleware that puts a headgate.Limiter in front of a handler:
//
//	limit, err := httplimit.New(limiter, httplimit.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	http.ListenAndServe(":8080", limit(handler))
//
// It limits each client address, reports the limits in header fields, and answers
// requests over a limit with status 429. [Options] changes the key of a request (see
// [KeyFunc]), its cost, and what happens while the store is unavailable.
//
// [NewTransport] makes an http.RoundTripper that keeps a client within the limits of a
// server: it waits before it sends. With [TransportOptions.Tokens], it keeps a budget of
// the tokens of a model.
package httplimit

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Options configures [New]. The zero Options limits each client address at a cost of 1 per
// request, sets all header fields, and lets requests pass while the store is unavailable.
type Options struct {
	// Key returns the key of a request. Default: [RemoteAddress]. Behind a proxy that is
	// the address of the proxy: use [ClientAddress] there.
	Key KeyFunc

	// Cost returns how many tokens a request takes. 0 lets the request pass uncharged, and
	// its header fields show the limits as they are. A negative cost, such as the
	// ContentLength of a body of unknown length, counts as 1. Default: 1.
	Cost func(*http.Request) int64

	// Count reports whether a response with this status counts, such as a failed login:
	//
	//	Count: func(status int) bool { return status == http.StatusUnauthorized }
	//
	// The cost is taken before the handler runs, so that requests at the same time cannot pass the
	// limit, and refunded when the handler writes another status: before the response is sent, so
	// that it waits for the store once more. As many slow requests as the limit holds deny the next
	// one, even if none of them counts in the end. The header fields of the response show the level
	// with its cost taken.
	//
	// A handler that writes nothing has the status 200, one that hijacks the connection 101.
	// Informational statuses such as 103 are no outcome. A request stays charged if its handler
	// panics, if its context ends before the status is written, because the client has left, and if
	// the refund fails, which Observe sees. Count is called by the goroutine of the handler. With
	// Count, a handler gets an [http.Flusher], [http.Hijacker] and io.ReaderFrom, and the rest by
	// [http.ResponseController]; there is no [http.Pusher]. Default: every request counts.
	Count func(status int) bool

	// Skip reports whether a request passes without being counted, such as a health check.
	// Default: no request.
	Skip func(*http.Request) bool

	// Denied writes the status and the body of the response to a denied request. The header
	// fields are already set. denied holds the decisions of the limits that denied, at
	// least one. It is not called if a fallback denies without having checked the limit, as
	// fallback.Closed does: nothing is exceeded, and the response is a 503. Default: status 429
	// with a problem document (RFC 9457).
	Denied func(w http.ResponseWriter, r *http.Request, denied []headgate.Decision)

	// FailClosed answers with status 503 if a request cannot be decided: the store is unavailable,
	// or the function of NewLimiterFunc failed. Default: such requests pass uncharged, except
	// those whose own context has ended, and those whose limits are not valid. Set it if the
	// function can fail. A fallback.Store decides while its store is unavailable, so only errors of
	// the function remain. Under fallback.Closed the response is a 503, too, and under
	// fallback.Local the header fields show this instance's share of the limit.
	FailClosed bool

	// Timeout is how long a decision may take until the store counts as unavailable. The request
	// may still be charged. Set it for a store across a network, to 50 ms for example, but not for
	// a fallback.Store, which has its own. Default: only the timeout of the store's client: for
	// redisstore.Open under a second, and seconds if thousands of requests come together; for a
	// client of your own with the defaults of go-redis up to 10 s.
	Timeout time.Duration

	// Shadow decides and charges, but denies no request and sets no header field. Use it to
	// try limits on live traffic. It requires Observe.
	Shadow bool

	// Observe is called with each decision, that of the strictest limit, before it takes
	// effect, and with each error of the store. It is not called for a request of cost 0.
	// It must be safe for concurrent use. Default: none.
	Observe func(r *http.Request, d headgate.Decision, err error)

	// Fields are the header fields to set. Default: [AllFields].
	Fields Fields
}

// New makes a middleware that limits the requests to a handler. It returns a
// [headgate.InvalidError] if l is nil or the options are invalid.
//
// If the store fails, or the function of NewLimiterFunc, requests pass without a limit and without
// a log entry. Set [Options.FailClosed] to answer them with status 503, and [Options.Observe] to
// see the errors.
//
// If a request has several limits, give them all to one Limiter. With two nested
// middlewares, the outer one charges requests that the inner one denies, and the fields of
// [XRateLimit] are those of the inner one.
func New(l *headgate.Limiter, o Options) (func(http.Handler) http.Handler, error) {
	if err := o.validate(l); err != nil {
		return nil, err
	}
	if o.Key == nil {
		o.Key = RemoteAddress
	}
	if o.Denied == nil {
		o.Denied = writeDenial
	}
	o.Fields = cmp.Or(o.Fields, AllFields)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: nil handler") // as net/http does
		}
		return &handler{Options: o, limiter: l, next: next, policies: newPolicies()}
	}, nil
}

func (o *Options) validate(l *headgate.Limiter) error {
	switch {
	case l == nil:
		return invalid("limiter", "nil", "one made by headgate.NewLimiter")
	case o.Timeout < 0:
		return invalid("Timeout", o.Timeout.String(), "more than 0, or 0 for none")
	case o.Fields&^(AllFields|NoFields) != 0:
		return invalid("Fields", strconv.Itoa(int(o.Fields)),
			"a set of Draft10, XRateLimit and RetryAfter, or NoFields")
	case o.Shadow && o.Observe == nil:
		return invalid("Observe", "nil", "a function, because Shadow has no other effect")
	}
	return nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

type handler struct {
	Options
	limiter  *headgate.Limiter
	next     http.Handler
	policies *policies
	clock    wallClock
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Skip != nil && h.Skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	var room [4]headgate.Decision
	key, cost := h.Key(r), costOf(r, h.Cost)
	ds, err := h.decide(r, key, cost, room[:0])
	if err != nil {
		h.serveUndecided(w, r, err)
		return
	}
	if len(ds) == 0 { // a key without limits
		h.next.ServeHTTP(w, r)
		return
	}
	if cost == 0 {
		for i := range ds {
			ds[i].RetryAfter = 0 // a free request is never denied
		}
	}
	d := headgate.Strictest(ds)
	if h.Observe != nil && cost > 0 {
		h.Observe(r, d, nil)
	}
	if !h.Shadow {
		if !d.Allowed() && d.Unchecked() {
			(h.Fields & RetryAfter).Write(w.Header(), time.Now(), ds...)
			writeUnavailable(w)
			return
		}
		h.Fields.write(w.Header(), h.clock.unixNano(), ds, h.policies)
		if !d.Allowed() {
			h.Denied(w, r, denials(ds))
			return
		}
	}
	if h.Count != nil && cost > 0 && d.Allowed() && !d.Unchecked() {
		h.serveCounted(w, r, key, cost)
		return
	}
	h.next.ServeHTTP(w, r)
}

// serveUndecided serves r if it cannot be decided. A request whose context has ended is not
// passed on: a client could cancel its requests in order to be served uncharged. Nor is one whose
// limits are not valid: that is a mistake in the program, and not a store that is unavailable.
func (h *handler) serveUndecided(w http.ResponseWriter, r *http.Request, err error) {
	if h.Observe != nil {
		h.Observe(r, headgate.Decision{}, err)
	}
	if !h.Shadow && (h.FailClosed || !headgate.Unavailable(err) || r.Context().Err() != nil) {
		writeUnavailable(w)
		return
	}
	h.next.ServeHTTP(w, r)
}

func (h *handler) decide(
	r *http.Request, key string, cost int64, ds []headgate.Decision,
) ([]headgate.Decision, error) {
	ctx := r.Context()
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	return h.limiter.AllowEach(ctx, key, cost, ds)
}

// costOf returns the cost of r: that of the given function, or 1.
func costOf(r *http.Request, cost func(*http.Request) int64) int64 {
	if cost != nil {
		if n := cost(r); n >= 0 {
			return n
		}
	}
	return 1
}

// wallClock is a wall clock that reads only the monotonic clock, at half the cost of
// time.Now. Once a second it reads both, so a step of the wall clock takes effect within a
// second, which is the precision of the header fields.
type wallClock struct{ last atomic.Pointer[time.Time] }

func (c *wallClock) unixNano() int64 {
	if last := c.last.Load(); last != nil {
		if since := time.Since(*last); since < time.Second {
			return last.UnixNano() + int64(since)
		}
	}
	now := time.Now()
	c.last.Store(&now)
	return now.UnixNano()
}
