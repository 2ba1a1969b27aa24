// Package httplimit puts a headgate.Limiter in front of a net/http handler:
//
//	limit, err := httplimit.New(limiter, httplimit.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	http.ListenAndServe(":8080", limit(handler))
//
// That limits each client address, tells every client its limits in header fields,
// and answers the requests over them with 429. [Options] chooses otherwise: who is
// limited (see [KeyFunc]), what a request costs, what happens while the store cannot
// say.
//
// And it keeps a client within the limits of others: a [Transport] waits for its turn
// before it calls.
package httplimit

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Options of [New]. The zero Options limits each client address, at a cost of 1 a
// request, with all header fields, and lets requests pass while the store cannot say.
type Options struct {
	// Key says who is limited. Default: [RemoteAddress], which behind a proxy is the
	// proxy: then use [ClientAddress].
	Key KeyFunc

	// Cost says how many tokens a request takes. 0 lets it pass uncharged, once the store
	// has said how its key stands; less than 0,
	// such as the ContentLength of a body of unknown length, counts as 1. Default: 1.
	Cost func(*http.Request) int64

	// Skip says which requests pass without being counted, such as health checks.
	// Default: none.
	Skip func(*http.Request) bool

	// Denied writes the answer to a request that was denied: status and body. The
	// header fields are set already. refused are the decisions of the limits that said
	// no, at least one. Default: 429 with a problem document (RFC 9457).
	Denied func(w http.ResponseWriter, r *http.Request, refused []headgate.Decision)

	// FailClosed answers 503 while the store cannot say. Default: requests pass, unless
	// the client has gone away meanwhile: a request whose own context has ended is never
	// passed on undecided. Around a fallback.Store neither happens as a rule, since that always
	// decides: choose its mode then, and what clients are told are the numbers of this
	// instance's share.
	FailClosed bool

	// Timeout is how long a decision may take before the store counts as one that
	// cannot say. The charge may be made all the same. Set it for a store across a
	// network, to 50 ms for example, but not for a fallback.Store, which has a budget of its
	// own. Default: as long as the store's client waits, which
	// for a Redis that stands still is many seconds for each request.
	Timeout time.Duration

	// Shadow decides and charges but refuses nobody and sets no header field, to try
	// limits on live traffic. It needs Observe.
	Shadow bool

	// Observe is told of each decision before it is acted on, that of the strictest
	// limit, and of each error of the store, but not of requests that cost nothing. Many
	// goroutines call it. Default: nobody.
	Observe func(r *http.Request, d headgate.Decision, err error)

	// Fields are the header fields that tell clients their limits. Default: [AllFields].
	Fields Fields
}

// New makes a middleware: a function that puts l in front of a handler. It returns a
// [headgate.InvalidError] if l is nil or the options contradict each other.
//
// Where a request has several limits, give them to one Limiter. Of two middlewares, one
// inside the other, the outer one charges what the inner one refuses, and the inner one
// has the last word on the fields of [XRateLimit].
func New(l *headgate.Limiter, o Options) (func(http.Handler) http.Handler, error) {
	if err := o.validate(l); err != nil {
		return nil, err
	}
	if o.Key == nil {
		o.Key = RemoteAddress
	}
	if o.Denied == nil {
		o.Denied = problem
	}
	if o.Fields == 0 {
		o.Fields = AllFields
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: nil handler") // as net/http does
		}
		return &handler{Options: o, limiter: l, next: next}
	}, nil
}

func (o *Options) validate(l *headgate.Limiter) error {
	switch {
	case l == nil:
		return &headgate.InvalidError{Field: "limiter", Value: "nil", Want: "one made by headgate.NewLimiter"}
	case o.Timeout < 0:
		return &headgate.InvalidError{Field: "Timeout", Value: o.Timeout.String(), Want: "more than 0, or 0 for the store's own"}
	case o.Fields&^(AllFields|NoFields) != 0:
		return &headgate.InvalidError{Field: "Fields", Value: strconv.Itoa(int(o.Fields)), Want: "a set of Draft10, XRateLimit and RetryAfter, or NoFields"}
	case o.Shadow && o.Observe == nil:
		return &headgate.InvalidError{Field: "Observe", Value: "nil", Want: "a function, because Shadow tells nobody else"}
	}
	return nil
}

type handler struct {
	Options
	limiter  *headgate.Limiter
	next     http.Handler
	policies policies
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Skip != nil && h.Skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	var room [4]headgate.Decision
	cost := h.cost(r)
	ds, err := h.decide(r, cost, room[:0])
	if err != nil {
		h.undecided(w, r, err)
		return
	}
	if len(ds) == 0 { // a key without limits
		h.next.ServeHTTP(w, r)
		return
	}
	if cost == 0 {
		grantAll(ds)
	}
	d := headgate.Strictest(ds)
	if h.Observe != nil && cost > 0 {
		h.Observe(r, d, nil)
	}
	if !h.Shadow {
		h.Fields.write(w.Header(), time.Now(), ds, &h.policies)
		if !d.Allowed() {
			h.Denied(w, r, refused(ds))
			return
		}
	}
	h.next.ServeHTTP(w, r)
}

// undecided serves r where the store could not say. A client that has hung up might
// have done so to be served uncharged.
func (h *handler) undecided(w http.ResponseWriter, r *http.Request, err error) {
	if h.Observe != nil {
		h.Observe(r, headgate.Decision{}, err)
	}
	if !h.Shadow && (h.FailClosed || r.Context().Err() != nil) {
		unavailable(w)
		return
	}
	h.next.ServeHTTP(w, r)
}

// grantAll turns looks into the decisions of a request that costs nothing, and so is not
// refused.
func grantAll(ds []headgate.Decision) {
	for i := range ds {
		ds[i].RetryAfter = 0
	}
}

func (h *handler) cost(r *http.Request) int64 {
	if h.Cost == nil {
		return 1
	}
	if n := h.Cost(r); n >= 0 {
		return n
	}
	return 1
}

func (h *handler) decide(r *http.Request, cost int64, ds []headgate.Decision) ([]headgate.Decision, error) {
	ctx := r.Context()
	if h.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, h.Timeout)
		defer stop()
	}
	return h.limiter.AllowEach(ctx, h.Key(r), cost, ds)
}
