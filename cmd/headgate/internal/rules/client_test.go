package rules

import (
	"net/http"
	"net/netip"
	"testing"
)

// A trusted proxy is known by its address, however that or the prefix is written.
func TestIsFrom(t *testing.T) {
	for _, c := range []struct {
		sender, trusted string
		want            bool
	}{
		{"10.1.2.3:99", "10.0.0.0/8", true},
		{"192.0.2.1:99", "10.0.0.0/8", false},
		{"[::ffff:10.1.2.3]:99", "10.0.0.0/8", true},
		{"10.1.2.3:99", "::ffff:10.0.0.0/104", true},
		{"[fe80::1%eth0]:99", "fe80::/10", true},
		{"[2001:db8::1]:99", "fe80::/10", false},
		{"@", "10.0.0.0/8", true}, // a Unix socket
	} {
		trusted := []netip.Prefix{netip.MustParsePrefix(c.trusted)}
		if got := IsFrom(&http.Request{RemoteAddr: c.sender}, trusted); got != c.want {
			t.Errorf("%s is from %s: %v; want %v", c.sender, c.trusted, got, c.want)
		}
		if IsFrom(&http.Request{RemoteAddr: c.sender}, nil) {
			t.Errorf("%s is trusted, though nobody is", c.sender)
		}
	}
}
