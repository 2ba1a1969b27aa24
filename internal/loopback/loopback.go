// Package loopback finds hosts that can only be this machine.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// IsHost reports whether host, with or without a port, can only be this machine. Other parties may
// own any other name, and let it point to this machine.
func IsHost(host string) bool {
	name := Hostname(host)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// Hostname returns host in lower case, without a port or brackets.
func Hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if bare, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(bare, "]")
	}
	return strings.ToLower(host)
}
