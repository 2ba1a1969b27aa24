package serve

import (
	"net/http"
	"net/netip"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// warnOfForwarded returns client with one warning in all about an X-Forwarded-For that has no
// effect. Without it, a rule by ip that counts a gateway as one client goes unnoticed.
func (s *server) warnOfForwarded(
	client func(*http.Request) netip.Addr, trusted []netip.Prefix,
) func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		if r.Header["X-Forwarded-For"] != nil && !s.forwarded.Load() && !rules.IsFrom(r, trusted) &&
			s.forwarded.CompareAndSwap(false, true) {
			s.log.Warn("X-Forwarded-For has no effect: its sender is not in trust, so rules by ip "+
				"count the sender; if it is your gateway, add it to trust in the file",
				"sender", r.RemoteAddr)
		}
		return client(r)
	}
}
