package httpapi

import (
	"net"
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/internal/loopback"
	"github.com/headgate/headgate/internal/problem"
)

// OtherSite is why a request from a page of another site is refused.
const OtherSite = "the request comes from a page of another site"

// Listen sets the address that serves h. Call it before the first request.
func (h *Handler) Listen(a net.Addr) { h.loopback = isLoopback(a) }

// ServesOperators reports whether an operator can do anything: beyond loopback, only with a token.
func (h *Handler) ServesOperators() bool { return h.loopback || h.HasTokens() }

// IsLocal reports whether r comes from a client of this machine, and not through a proxy, as far as
// r says so.
func (h *Handler) IsLocal(r *http.Request) bool { return h.loopback && isDirect(r) }

// OnlyOwnPages refuses requests that a page of another site makes a browser send to next, which
// listens on a. On loopback, the host must be a loopback name, because other names may be owned by
// others and point to this machine.
func OnlyOwnPages(a net.Addr, next http.Handler) http.Handler {
	isLocal := isLoopback(a)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !IsOwnSite(r):
			WriteError(w, &problem.Problem{Status: http.StatusForbidden, Detail: OtherSite})
		case isLocal && !loopback.IsHost(r.Host):
			WriteError(w, &problem.Problem{Status: http.StatusForbidden,
				Detail: "the host is " + jsonbody.Quote(r.Host) +
					"; want localhost or a loopback address"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// IsOwnSite reports whether no page of another site sends r.
func IsOwnSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// isDirect reports whether r comes from a client of this machine, and not through a proxy that adds
// a field. By default, nginx adds no field, but many versions of it send HTTP/1.0.
func isDirect(r *http.Request) bool {
	for name := range r.Header {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Request-Id":
			return false
		}
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") {
			return false
		}
	}
	return r.ProtoAtLeast(1, 1) && loopback.IsHost(r.Host)
}

// isLoopback reports whether only this machine can connect to a.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() || !ok && a.Network() == "unix"
}
