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
			rest, element, more = a.cut(rest)
			if strings.TrimSpace(element) == "" {
				continue // lists may have empty elements (RFC 9110, 5.6.1)
			}
			next, ok := parseAddress(a.addressIn(element))
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

// cutComma cuts the last element from a list, and reports whether there are more.
func cutComma(list string) (before, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// cutOutsideQuotes cuts at the last separator that is in no quoted string. It searches from the
// end, so that a quote that a client left open hides nothing.
func cutOutsideQuotes(separator byte) func(list string) (before, last string, more bool) {
	return func(list string) (before, last string, more bool) {
		inside := false
		for i := len(list) - 1; i >= 0; i-- {
			switch {
			case list[i] == '"' && !escaped(list[:i]):
				inside = !inside
			case list[i] == separator && !inside:
				return list[:i], list[i+1:], true
			}
		}
		return "", list, false
	}
}

// escaped reports whether what follows before is escaped by a backslash.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// cutParameter cuts the last parameter from an element of Forwarded.
var cutParameter = cutOutsideQuotes(';')

// forwardedFor returns the address after for= in an element of Forwarded, or "" if there is
// none or more than one.
func forwardedFor(element string) string {
	address, found := "", false
	for more := true; more; {
		var parameter string
		element, parameter, more = cutParameter(element)
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if found {
			return ""
		}
		address, found = unquoted(strings.TrimSpace(value)), true
	}
	return address
}

// unquoted removes the quotes around s. An address holds nothing that is escaped.
func unquoted(s string) string {
	if n := len(s); n > 1 && s[0] == '"' && s[n-1] == '"' {
		return s[1 : n-1]
	}
	return s
}
