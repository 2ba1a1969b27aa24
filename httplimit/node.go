package httplimit

import (
	"net/netip"
	"strings"
)

// What is read from lists of forwarders. A list is read from its end: there our own
// proxies wrote, and what stands before may be forged in any way.

// parseNode reads an address with or without a port, IPv6 with or without brackets.
func parseNode(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") {
		host, port, closed := strings.Cut(s[1:], "]")
		if !closed || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	} else if i := strings.IndexByte(s, ':'); i >= 0 && strings.LastIndexByte(s, ':') == i { // IPv4 and a port
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	at, err := netip.ParseAddr(s)
	if err != nil {
		return at, false
	}
	return at.Unmap().WithZone(""), true
}

// plainIPv4 is the host of an IPv4 address and a port, in the form that netip writes and
// takes alone: without leading zeros. It finds the same as parseNode, in less time.
func plainIPv4(s string) (host string, ok bool) {
	dots, number, digits := 0, 0, 0
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' {
			number, digits = 10*number+int(c-'0'), digits+1
			if digits > 3 || number > 255 || digits > 1 && number < 10 {
				return "", false
			}
			continue
		}
		if digits == 0 || c != '.' {
			return s[:i], c == ':' && dots == 3 && digits > 0 && isPort(s[i:])
		}
		dots, number, digits = dots+1, 0, 0
	}
	return "", false
}

// isPort says whether s is a colon and a number. A port may be hidden as _name in
// Forwarded.
func isPort(s string) bool {
	if len(s) < 2 || s[0] != ':' {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if (c < '0' || c > '9') && s[1] != '_' {
			return false
		}
	}
	return true
}

// embedded is the IPv4 address whose owner at belongs to: that of a client behind NAT64
// (RFC 6052) or of a 6to4 prefix (RFC 3056). It is for keys alone: nobody is trusted for
// an address inside of another, which anybody may have made up.
func embedded(at netip.Addr) netip.Addr {
	if at.Is4() {
		return at
	}
	b := at.As16()
	switch {
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	case nat64.Contains(at):
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return at
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// cutPlain cuts the last element from a list, and says whether there are more.
func cutPlain(list string) (before, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// cutQuoted cuts at the last separator that is in no quoted string, as seen from the
// end.
func cutQuoted(separator byte) func(list string) (before, last string, more bool) {
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

// escaped says whether what follows before is escaped by a backslash.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// cutPair cuts the last parameter from an element of Forwarded.
var cutPair = cutQuoted(';')

// forwardedFor is the address that an element of Forwarded tells after for=, or "", also
// if it tells two.
func forwardedFor(element string) string {
	node, told := "", false
	for more := true; more; {
		var pair string
		element, pair, more = cutPair(element)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if told {
			return ""
		}
		node, told = unquoted(strings.TrimSpace(value)), true
	}
	return node
}

// unquoted is s without the quotes around it. An address holds nothing to escape.
func unquoted(s string) string {
	if n := len(s); n > 1 && s[0] == '"' && s[n-1] == '"' {
		return s[1 : n-1]
	}
	return s
}
