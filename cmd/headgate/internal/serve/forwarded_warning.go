package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// warnOfForwarded returns client with one warning in all about an X-Forwarded-For that has no
// effect. Without it, a rule by ip that counts a gateway as one client goes unnoticed.
func (s *server) warnOfForwarded(
	client func(*http.Request) netip.Addr, trusted []netip.Prefix,
) func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		if namesOther(r) && !s.forwarded.Load() && !rules.IsFrom(r, trusted) &&
			s.forwarded.CompareAndSwap(false, true) {
			s.log.Warn("X-Forwarded-For has no effect: its sender is not in trust, so rules by ip "+
				"count the sender; if it is your gateway, add it to trust in the file",
				"sender", r.RemoteAddr)
		}
		return client(r)
	}
}

// noURI logs a request of a gateway that gets 400.
func (s *server) noURI(r *http.Request) {
	if s.sampled.due("no URI") {
		s.log.Warn("a request to /auth has no X-Forwarded-Uri and gets 400; at most one a minute "+
			"is logged", "sender", r.RemoteAddr)
	}
}

// namesOther reports whether the X-Forwarded-For of r names another than its sender, which Envoy
// adds.
func namesOther(r *http.Request) bool {
	values := r.Header["X-Forwarded-For"]
	if len(values) == 0 {
		return false
	}
	sender := r.RemoteAddr
	if host, _, err := net.SplitHostPort(sender); err == nil {
		sender = host
	}
	return len(values) > 1 || strings.TrimSpace(values[0]) != sender
}
