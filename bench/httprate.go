package main

import (
	"context"
	"net"
	"net/http"

	"github.com/go-chi/httprate"
)

// httprateMiddleware is go-chi/httprate by the address at the other end.
func httprateMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	byAddress := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	return httprate.LimitBy(int(s.Burst), s.Period(), byAddress)(next), nil
}

// httprateLimiter is the limiter of go-chi/httprate with its local counter,
// asked without a server around it and told to set no header fields.
type httprateLimiter struct {
	l *httprate.RateLimiter
	r *http.Request
}

func openHTTPRate(s Setup) (Contender, error) {
	l := httprate.NewRateLimiter(int(s.Burst), s.Period(), httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
	return httprateLimiter{l, r}, err
}

// Take passes no ResponseWriter: without header fields it is written to only
// after an error, and the local counter has none.
func (h httprateLimiter) Take(key string) (bool, error) {
	return !h.l.OnLimit(nil, h.r, key), nil
}
