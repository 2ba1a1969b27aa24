package main

import (
	"net"
	"net/http"

	"github.com/go-chi/httprate"
)

// httprateMiddleware is go-chi/httprate by client address.
func httprateMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	byAddress := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	return httprate.LimitBy(int(s.Burst), s.Period(), byAddress)(next), nil
}
