package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// The fields about limits arrive in the spelling of their documents.
func TestSpellingOfFields(t *testing.T) {
	app := httptest.NewServer(http.NotFoundHandler())
	defer app.Close()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	s, err := newServer(Options{
		Files: []string{write(t, file, "rules: [{name: r, limits: 2/h}]\n")},
		HTTP:  "127.0.0.1:0", GRPC: Off, Debug: Off, Metrics: Off, Connections: 100,
		Proxies: []Proxy{{Listen: "127.0.0.1:0", Target: app.URL}},
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.closeListeners)
	for _, l := range s.listeners {
		go func() { _ = l.serve() }() // until it is closed
		for range 3 {                 // granted and denied
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.on.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "POST /v1/take HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"+
				"Prefer: status\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n"+
				`{"key":"k","rule":"r"}`)
			got, err := io.ReadAll(conn)
			_ = conn.Close()
			for _, name := range []string{
				"RateLimit", "RateLimit-Policy",
				"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
			} {
				if err != nil || !strings.Contains(string(got), "\r\n"+name+": ") {
					t.Errorf("%s: %v, no %s in\n%s", l.name, err, name, got)
				}
			}
		}
	}
}
