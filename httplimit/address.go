package httplimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// AddressOptions of [ClientAddress].
type AddressOptions struct {
	// Trusted are the addresses of your own proxies. What they say about a client is
	// believed, and nothing that anybody else says. Whoever reaches the server over a
	// Unix socket is trusted if anybody is; name 127.0.0.1/32 if nobody else should be.
	// Default: none, and then all of a Unix socket share one key.
	Trusted []netip.Prefix

	// Forwarded reads the field Forwarded (RFC 7239) where the proxies write that. Only
	// one of the two is ever read, because a client can forge the one that the
	// proxies do not write. Default: X-Forwarded-For.
	Forwarded bool

	// IPv6Bits is the length of the prefix by which IPv6 clients are grouped, 1 to 128:
	// who has one address usually has all of a /64. Default: 64.
	IPv6Bits int
}

// RemoteAddress is the key of the other end of the connection, IPv6 by /64: that of
// [ClientAddress] where nobody is trusted. Behind a proxy that is the proxy.
func RemoteAddress(r *http.Request) string { return remote.key(r) }

var remote = addresses{bits: 64}

// ClientAddress makes the key of the client's address: the other end of the
// connection; or, if that is a trusted proxy, the last address in the list of
// forwarders that is not one. So a client cannot choose its key by sending the field.
// Where the list ends early, in junk or in a name, the key is that of the last proxy
// before it.
//
// Ports and zones are dropped. An IPv4 address inside an IPv6 one counts as IPv4:
// mapped, translated by NAT64 (64:ff9b::/96) or as the owner of a 6to4 prefix
// (2002::/16).
//
// It returns a [headgate.InvalidError] for an IPv6Bits out of range or a prefix that is
// none.
func ClientAddress(o AddressOptions) (KeyFunc, error) {
	a := &addresses{field: "X-Forwarded-For", cut: cutPlain, node: strings.TrimSpace, bits: 64}
	if o.Forwarded {
		a.field, a.cut, a.node = "Forwarded", cutQuoted(','), forwardedFor
	}
	switch {
	case o.IPv6Bits < 0 || o.IPv6Bits > 128:
		return nil, &headgate.InvalidError{Field: "IPv6Bits", Value: strconv.Itoa(o.IPv6Bits), Want: "1 to 128, or 0 for 64"}
	case o.IPv6Bits > 0:
		a.bits = o.IPv6Bits
	}
	for i, p := range o.Trusted {
		if !p.IsValid() || p.Addr().Is4In6() && p.Bits() < 96 {
			return nil, &headgate.InvalidError{Field: "Trusted[" + strconv.Itoa(i) + "]", Value: p.String(), Want: "a network, such as 10.0.0.0/8 or 2001:db8::/32"}
		}
		a.trusted = append(a.trusted, unmapped(p))
	}
	return a.key, nil
}

type addresses struct {
	trusted []netip.Prefix
	field   string
	cut     func(list string) (before, last string, more bool) // at the last comma
	node    func(element string) string                        // the address in an element
	bits    int
}

func (a *addresses) key(r *http.Request) string {
	if len(a.trusted) == 0 {
		if host, ok := plainIPv4(r.RemoteAddr); ok { // what is most
			return "ip:" + host
		}
	}
	at, ok := parseNode(r.RemoteAddr)
	if len(a.trusted) > 0 && (ok && a.trusts(at) || isSocket(r.RemoteAddr)) {
		if client, found := a.client(r.Header[a.field]); found {
			at, ok = client, true
		}
	}
	if !ok {
		return "ip:unknown"
	}
	return a.group(at)
}

// isSocket says whether net/http gave the address of a Unix socket, which is often
// nameless.
func isSocket(remoteAddr string) bool {
	return remoteAddr == "" || remoteAddr[0] == '@' || remoteAddr[0] == '/'
}

// client is the last address in the lines of the field that is not trusted, or else
// the first one that can be read without a gap from the end.
func (a *addresses) client(lines []string) (at netip.Addr, found bool) {
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var element string
			rest, element, more = a.cut(rest)
			if strings.TrimSpace(element) == "" {
				continue // lists may have empty elements (RFC 9110, 5.6.1)
			}
			next, ok := parseNode(a.node(element))
			if !ok {
				return at, found
			}
			at, found = next, true
			if !a.trusts(at) {
				return at, true
			}
		}
	}
	return at, found
}

func (a *addresses) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(a.trusted, func(p netip.Prefix) bool { return p.Contains(at) })
}

// group is the key of at.
func (a *addresses) group(at netip.Addr) string {
	at = embedded(at)
	var room [64]byte
	b := append(room[:0], "ip:"...)
	if at.Is4() || a.bits == at.BitLen() {
		return string(at.AppendTo(b))
	}
	p, _ := at.Prefix(a.bits) // fits, by ClientAddress
	return string(p.AppendTo(b))
}

// unmapped is p, without a mapping of IPv4 to IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
