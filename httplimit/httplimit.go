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
// It limits each client address, reports the limits in header fields, and answers requests over a
// limit with status 429. [Options] changes the key of a request (see [KeyFunc]), its cost, and what
// happens while the store is unavailable.
//
// [NewTransport] makes an http.RoundTripper that keeps a client within the limits of a server: it
// waits before it sends. With [TransportOptions.Tokens], the limits count the tokens of a model.
package httplimit

import (
	"context"
	"net/http"

	"github.com/headgate/headgate"
)

// New makes a middleware that limits the requests to a handler. It returns a
// [headgate.InvalidError] if l is nil or the options are invalid.
//
// If the store or the function of NewLimiterFunc fails, requests pass without a limit and without a
// log entry. Set WhenStoreFails to [Closed] to answer them with status 503, and Observe to see the
// errors.
//
// If a request has several limits, give them all to one Limiter. With two nested middlewares, the
// outer one charges requests that the inner one denies, and the fields of [XRateLimit] are those of
// the inner one.
func New(l *headgate.Limiter, o Options) (func(http.Handler) http.Handler, error) {
	if o.Key == nil {
		o.Key = Key(RemoteAddress)
	}
	d, err := NewDecider(l, o)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: nil handler") // as net/http does
		}
		return &handler{Decider: d, next: next}
	}, nil
}

type handler struct {
	*Decider[*http.Request, DenyFunc]
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := h.Decide(r.Context(), r, w.Header())
	switch {
	case v.Status == http.StatusTooManyRequests && h.Denied != nil:
		h.Denied(w, r, v.Denied)
	case v.Status != 0:
		v.Write(w)
	case v.Counted:
		h.serveCounted(w, r, v)
	default:
		h.next.ServeHTTP(w, r)
	}
}

// Key adapts k to net/http, for Options.Key.
func Key(k KeyFunc) func(*http.Request) string {
	return func(r *http.Request) string { return k(netRequest{r}) }
}

// netRequest is a Request of net/http.
type netRequest struct{ r *http.Request }

func (r netRequest) Context() context.Context   { return r.r.Context() }
func (r netRequest) RemoteAddr() string         { return r.r.RemoteAddr }
func (r netRequest) Host() string               { return r.r.Host }
func (r netRequest) Path() string               { return r.r.URL.Path }
func (r netRequest) Field(name string) []string { return r.r.Header[name] }
