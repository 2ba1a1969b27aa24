package httplimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// AddressOptions of [ClientAddress]. The zero AddressOptions trusts nobody.
type AddressOptions struct {
	// Trusted are the addresses of your own proxies. What they say about a client is
	// believed, and nothing that anybody else says. Default: none.
	Trusted []netip.Prefix

	// Forwarded reads the field Forwarded (RFC 7239) where the proxies write that. Only
	// one of the two is ever read, because a client can forge the one that the
	// proxies do not write. Default: X-Forwarded-For.
	Forwarded bool

	// IPv6Bits is the length of the prefix by which IPv6 clients are grouped: who has
	// one address usually has all of a /64. 128 and more tell every address apart.
	// Default: 64, also for less than 1.
	IPv6Bits int
}

// ClientAddress makes the key of the client's address: the other end of the
// connection; or, if that is a trusted proxy, the last address in the list of
// forwarders that is not one. So a client cannot choose its key by sending the field.
// Where the list ends early, in junk or in a name, the key is that of the last proxy
// before it. An IPv4 address mapped to IPv6 counts as IPv4; zones and ports are dropped.
//
// A connection over a Unix socket has no address, and counts as a trusted proxy if
// there are any.
func ClientAddress(o AddressOptions) KeyFunc {
	a := &addresses{field: "X-Forwarded-For", bits: o.IPv6Bits}
	if o.Forwarded {
		a.field, a.node = "Forwarded", forwardedFor
	} else {
		a.node = strings.TrimSpace
	}
	if a.bits < 1 {
		a.bits = 64
	}
	for _, p := range o.Trusted {
		a.trusted = append(a.trusted, unmapped(p))
	}
	return a.key
}

type addresses struct {
	trusted []netip.Prefix
	field   string
	node    func(element string) string // the address in an element of the field
	bits    int
}

func (a *addresses) key(r *http.Request) string {
	at, ok := parseNode(r.RemoteAddr)
	local := r.RemoteAddr == "" || r.RemoteAddr == "@"
	if len(a.trusted) > 0 && (local || ok && a.trusts(at)) {
		if client, found := a.client(r.Header[a.field]); found {
			at, ok = client, true
		}
	}
	if !ok {
		return "ip:unknown"
	}
	return a.group(at)
}

// client is the last address in the lines of the field that is not trusted, or else
// the first one that can be read without a gap from the end.
func (a *addresses) client(lines []string) (at netip.Addr, found bool) {
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var element string
			rest, element, more = cutLast(rest)
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

// cutLast cuts the last element from a list, and says whether there are more.
func cutLast(list string) (before, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

func (a *addresses) trusts(at netip.Addr) bool {
	for _, p := range a.trusted {
		if p.Contains(at) {
			return true
		}
	}
	return false
}

// group is the key of at.
func (a *addresses) group(at netip.Addr) string {
	var room [64]byte
	b := append(room[:0], "ip:"...)
	if at.Is4() || a.bits >= at.BitLen() {
		return string(at.AppendTo(b))
	}
	p, _ := at.Prefix(a.bits) // an error is a length of below 0 or above 128
	return string(p.AppendTo(b))
}

// parseNode reads an address with or without a port, IPv6 with or without brackets.
func parseNode(s string) (netip.Addr, bool) {
	first := strings.IndexByte(s, ':')
	switch {
	case strings.HasPrefix(s, "["):
		s, _, _ = strings.Cut(s[1:], "]")
	case first >= 0 && strings.LastIndexByte(s, ':') == first: // IPv4 and a port
		s = s[:first]
	}
	at, err := netip.ParseAddr(s)
	return at.Unmap().WithZone(""), err == nil
}

// forwardedFor is the address that an element of Forwarded tells after for=, or "".
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// unmapped is p, without a mapping of IPv4 to IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}
