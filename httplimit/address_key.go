package httplimit

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// AddressOptions configures [ClientAddress].
type AddressOptions struct {
	// Trusted lists the addresses of your own proxies. X-Forwarded-For from other addresses is
	// ignored. If any address is listed, connections over a Unix socket are trusted, too. To trust
	// only connections over a Unix socket and from 127.0.0.1, list 127.0.0.1/32. Default: no
	// address, and all connections over a Unix socket share one key.
	Trusted []netip.Prefix

	// IPv6Bits is the length of the prefix by which IPv6 clients are grouped, 1 to 128. A
	// client that has one IPv6 address usually has the whole /64. Default: 64.
	IPv6Bits int
}

// RemoteAddress makes keys from the address of the other end of the connection, such as
// ip:192.0.2.1, or ip:2001:db8::/64 for IPv6. Behind a proxy, use [ClientAddress].
func RemoteAddress(r Request) string { return remote.key(r) }

var remote = addresses{bits: 64}

// ClientAddress makes keys from the client's address, also behind trusted proxies.
//
// The client is the other end of the connection. If that is a trusted proxy, the client is the last
// address in X-Forwarded-For that is not trusted. So a client cannot choose its key by sending the
// field. If an entry cannot be read as an address, the key is the address of the proxy that wrote
// the entry. The field Forwarded (RFC 7239) is not read: let your proxies write X-Forwarded-For.
//
// Ports and zones are dropped. An IPv4 address inside an IPv6 address counts as IPv4. This holds
// for mapped addresses, for NAT64 (64:ff9b::/96) and for the owner of a 6to4 prefix (2002::/16).
//
// It returns a [headgate.InvalidError] if IPv6Bits is out of range or a prefix is invalid.
func ClientAddress(o AddressOptions) (KeyFunc, error) {
	a, err := newAddresses(o)
	if err != nil {
		return nil, err
	}
	return a.key, nil
}

// ClientIP returns a function that finds the address by which [ClientAddress] makes keys, such as
// for a log. IPv6Bits has no effect. The function reports false if there is no address, as with a
// Unix socket. The errors are those of ClientAddress.
func ClientIP(o AddressOptions) (func(*http.Request) (netip.Addr, bool), error) {
	a, err := newAddresses(o)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) (netip.Addr, bool) { return a.of(netRequest{r}) }, nil
}

func newAddresses(o AddressOptions) (*addresses, error) {
	a := &addresses{bits: 64}
	switch {
	case o.IPv6Bits < 0 || o.IPv6Bits > 128:
		return nil, invalid("IPv6Bits", strconv.Itoa(o.IPv6Bits), "1 to 128, or 0 for 64")
	case o.IPv6Bits > 0:
		a.bits = o.IPv6Bits
	}
	for i, p := range o.Trusted {
		if !p.IsValid() || p.Addr().Is4In6() && p.Bits() < 96 {
			return nil, invalid("Trusted["+strconv.Itoa(i)+"]", p.String(),
				"a network, such as 10.0.0.0/8 or 2001:db8::/32")
		}
		a.trusted = append(a.trusted, unmapped(p))
	}
	return a, nil
}

type addresses struct {
	bits    int            // of the prefix by which IPv6 is grouped
	trusted []netip.Prefix // the proxies
}

func (a *addresses) key(r Request) string {
	if len(a.trusted) == 0 {
		if host, ok := ipv4Host(r.RemoteAddr()); ok { // the most frequent case
			return "ip:" + host
		}
	}
	at, ok := a.of(r)
	if !ok {
		return "ip:unknown"
	}
	return a.group(at)
}

// of returns the address of the client of r.
func (a *addresses) of(r Request) (at netip.Addr, ok bool) {
	remote := r.RemoteAddr()
	at, ok = parseAddress(remote)
	if len(a.trusted) > 0 && (ok && a.trusts(at) || isSocket(remote)) {
		if client, found := a.client(r.Field("X-Forwarded-For")); found {
			at, ok = client, true
		}
	}
	if !ok {
		return at, false
	}
	return embeddedIPv4(at), true
}

func (a *addresses) group(at netip.Addr) string {
	var room [64]byte
	b := append(room[:0], "ip:"...)
	if at.Is4() || a.bits == at.BitLen() {
		return string(at.AppendTo(b))
	}
	p, _ := at.Prefix(a.bits) // fits, by ClientAddress
	return string(p.AppendTo(b))
}

// parseAddress reads an address with or without a port, IPv6 with or without brackets.
func parseAddress(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") {
		host, port, closed := strings.Cut(s[1:], "]")
		if !closed || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	} else if i := strings.IndexByte(s, ':'); i >= 0 && strings.LastIndexByte(s, ':') == i {
		if !isPort(s[i:]) { // IPv4 and a port
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

// ipv4Host returns the host of an IPv4 address and a port. It accepts what parseAddress does,
// which has only one way to write an IPv4 address, in a third of the time.
func ipv4Host(s string) (host string, ok bool) {
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

// isPort reports whether s is a colon and a number.
func isPort(s string) bool {
	if len(s) < 2 || s[0] != ':' {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// isSocket reports whether the server gave the address of a Unix socket, which is often empty.
func isSocket(remoteAddr string) bool {
	return remoteAddr == "" || remoteAddr[0] == '@' || remoteAddr[0] == '/'
}

// embeddedIPv4 returns the IPv4 address whose owner at belongs to: a client behind NAT64
// (RFC 6052) or the owner of a 6to4 prefix (RFC 3056). It is for keys alone: an address
// inside another makes no proxy trusted, because any client may have invented it.
func embeddedIPv4(at netip.Addr) netip.Addr {
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
