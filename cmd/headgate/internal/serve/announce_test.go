package serve

import (
	"net"
	"strings"
	"testing"
)

// TestConsoleIsAnnounced: an address is given where there is a page, and else the reason, once.
func TestConsoleIsAnnounced(t *testing.T) {
	local, public := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for _, c := range []struct {
		on     *net.TCPAddr
		tokens string
		url    bool
	}{
		{local, "", true}, {public, "api: {tokens: [" + consoleToken + "]}\n", true}, {public, "", false},
	} {
		var log buffer
		s := newTestServer(t, c.tokens+"rules: [{name: r, limits: 9/h}]\n", &log)
		s.api.Listen(c.on)
		s.announceConsole("http://127.0.0.1:8080", "[::]:8080")
		text := log.String()
		if strings.Contains(text, "/console/") != c.url || strings.Contains(text, "level=WARN msg=\"the console is off") == c.url {
			t.Errorf("on %s, tokens %q: %s", c.on, c.tokens, text)
		}
		if !c.url && (strings.Count(text, "\n") != 1 || !strings.Contains(text, "set api.tokens") || s.consoleHint("x") != "") {
			t.Errorf("it does not say once what to do: %s", text)
		}
	}
}
