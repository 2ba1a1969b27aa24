package httplimit

import (
	"net/netip"
	"slices"
	"strings"
)

// This file finds the client in the field that trusted proxies write. A list is read from its
// end, which our own proxies wrote: a client may have forged everything before.

// client returns the last address in the lines of the field that is not trusted, or else
// the first one that can be read without a gap from the end.
func (a *addresses) client(lines []string) (at netip.Addr, found bool) {
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var element string
			rest, element, more = cutLast(rest)
			if element == "" {
				continue // lists may have empty elements (RFC 9110, 5.6.1)
			}
			next, ok := parseAddress(element)
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

// unmapped returns p without a mapping of IPv4 to IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// cutLast cuts the last element from a list, and reports whether there are more.
func cutLast(list string) (before, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.TrimSpace(list[i+1:]), i >= 0
}
