package rules

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/httplimit"
)

// ClientAddress returns a function that finds the address of the client of a request: the other
// end of the connection or, if that is a trusted proxy, the last address in X-Forwarded-For that
// is not trusted. See [httplimit.ClientAddress].
func ClientAddress(trusted []netip.Prefix) (func(*http.Request) netip.Addr, error) {
	key, err := httplimit.ClientAddress(httplimit.AddressOptions{Trusted: trusted, IPv6Bits: 128})
	if err != nil {
		return nil, err
	}
	of := httplimit.Key(key)
	return func(r *http.Request) netip.Addr {
		at, err := netip.ParseAddr(strings.TrimPrefix(of(r), "ip:"))
		if err != nil { // ip:unknown
			return netip.Addr{}
		}
		return at
	}, nil
}

// IsFrom reports whether one of trusted sent r, by the addresses that [ClientAddress] trusts.
func IsFrom(r *http.Request, trusted []netip.Prefix) bool {
	sender, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a Unix socket
		return len(trusted) > 0
	}
	at := sender.Addr().Unmap().WithZone("")
	mapped := netip.AddrFrom16(at.As16()) // as a prefix may be written
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool {
		return p.Contains(at) || p.Contains(mapped)
	})
}
