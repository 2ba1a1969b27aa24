package httplimit

import (
	"net/netip"
	"testing"
)

// ipv4Host finds the same as parseAddress, and every IPv4 address with a port.
func FuzzIPv4Host(f *testing.F) {
	for _, s := range []string{"192.0.2.1:1", "0.0.0.0:0", "255.255.255.255:65535", "256.1.1.1:1",
		"01.1.1.1:1", "1.1.1:1", "1.1.1.1.1:1", "1.1.1.1", "1.1.1.1:", "1..1.1:1", ":1", "",
		"1.1.1.1:x", "1.1.1.00:1", "1.1.1.1]:1", "10.20.30.40:_x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, ok := ipv4Host(s)
		at, long := parseAddress(s)
		if ok && (!long || at.String() != host) {
			t.Errorf("%q: %q the short way, %v %v the long way", s, host, at, long)
		}
		if p, err := netip.ParseAddrPort(s); err == nil && p.Addr().Is4() && !ok {
			t.Errorf("%q: not found the short way", s)
		}
	})
}
