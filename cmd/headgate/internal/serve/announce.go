package serve

import (
	"fmt"
	"net"
	"strings"
)

// announce says where the server listens and, if it was started without files, what to try.
func (s *server) announce() {
	addresses := make(map[string]string)
	for _, l := range s.listeners {
		addresses[l.name] = l.on.Addr().String()
		s.log.Info("listening", "listener", l.name, "address", l.on.Addr().String(),
			"store", s.stores.name)
	}
	if s.o.HTTP == Off {
		return
	}
	http := "http://" + reachable(addresses["http"])
	if s.first.TLS.Cert != "" {
		http = "https" + strings.TrimPrefix(http, "http")
	}
	s.announceConsole(http, addresses["http"])
	if !s.builtIn() || s.o.Out == nil {
		return
	}
	kept := "kept in memory"
	if s.stores.redis != nil {
		kept = "kept in " + s.stores.name
	}
	fmt.Fprintf(s.o.Out, hints, kept, http, http, http, s.consoleHint(http))
}

const hints = `Headgate serves the rule "example": 5 requests a minute for each key, %s.

Try, in another terminal:
  curl -i %s/auth/example
  curl %s/v1/take -d '{"rule": "example", "key": "user:42"}'
  curl %s/metrics
%s
Next: write your rules to a file, and start headgate serve --config FILE.
Ctrl-C stops the server.
`

// announceConsole logs the URL of the console, or the reason why it is off.
func (s *server) announceConsole(http, address string) {
	switch {
	case !s.api.ServesOperators():
		s.log.Warn("the console is off, and overrides, resets, refunds and reloads are refused, "+
			"because the address is not loopback and api.tokens is not set",
			"address", address, "danger", "any program that connects can charge any key",
			"remedy", "set api.tokens in the rules file, or --http to a loopback address")
	case s.console == nil:
	case !strings.HasPrefix(s.o.HTTP, "unix:"):
		s.log.Info("serving the console", "url", http+"/console/")
	}
}

// consoleHint says where the console is.
func (s *server) consoleHint(http string) string {
	if s.console == nil || !s.console.IsOn() {
		return ""
	}
	return "\nConsole: " + http + "/console/\n"
}

// reachable returns an address to connect to: one on all interfaces is on this machine.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
