package rules

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/httplimit"
)

// ClientAddress returns a function that finds the address of the client of a request: the other
// end of the connection or, if that is a trusted proxy, the last address in X-Forwarded-For that
// is not trusted. See [httplimit.ClientAddress].
func ClientAddress(trusted []netip.Prefix) (func(*http.Request) netip.Addr, error) {
	find, err := httplimit.ClientIP(httplimit.AddressOptions{Trusted: trusted})
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) netip.Addr {
		at, _ := find(r)
		return at
	}, nil
}

// IsFrom reports whether one of trusted sent r, by the addresses that [ClientAddress] trusts.
func IsFrom(r *http.Request, trusted []netip.Prefix) bool {
	sender, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a Unix socket
		return len(trusted) > 0
	}
	return contains(trusted, sender.Addr())
}

// contains reports whether at is in one of the networks. An unknown address is in none.
func contains(networks []netip.Prefix, at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool {
		return p.Contains(at) || p.Addr().Is4In6() && p.Contains(netip.AddrFrom16(at.As16()))
	})
}
