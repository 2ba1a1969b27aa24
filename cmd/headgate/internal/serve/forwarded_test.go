package serve

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An ignored X-Forwarded-For is one warning, and one from a trusted address none.
func TestWarningOfForwarded(t *testing.T) {
	var log buffer
	s := newTestServer(t, "trust: [10.0.0.0/8]\nrules: [{name: r, key: ip, limits: 9/h}]\n", &log)
	ask := func(sender, forwarded string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth", nil)
		r.Header.Set("X-Forwarded-Uri", "/")
		r.RemoteAddr = sender
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		if s.http().ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	ask("192.0.2.1:9", "")
	ask("10.1.1.1:9", "192.0.2.9")
	if strings.Contains(log.String(), "X-Forwarded-For") {
		t.Errorf("a warning without a reason: %s", log.String())
	}
	ask("192.0.2.1:9", "192.0.2.9")
	ask("192.0.2.2:9", "192.0.2.9")
	if n := strings.Count(log.String(), "X-Forwarded-For has no effect"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "sender=192.0.2.1:9") {
		t.Errorf("without the sender: %s", log.String())
	}
}

// Requests of a gateway that does not send the URI get 400, with one line a minute.
func TestNoURIIsLogged(t *testing.T) {
	var log buffer
	s := newTestServer(t, "rules: [{name: r, key: ip, limits: 9/h}]\n", &log)
	for range 3 {
		w := httptest.NewRecorder()
		s.http().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth", nil))
		if w.Code != http.StatusBadRequest {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if n := strings.Count(log.String(), "has no X-Forwarded-Uri and gets 400"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// The proxy believes a sender by its address in trust, also after a reload.
func TestProxyBelievesTrust(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("X-Forwarded-Proto"))) //nolint:gosec // the test reads it
	}))
	defer app.Close()
	var log buffer
	s := newTestServer(t, "trust: [10.0.0.0/8]\nrules: [{name: r, key: ip, limits: 9/h}]\n", &log)
	h, err := s.proxy(Proxy{Target: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	check := func(sender, want string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = sender
		r.Header.Set("X-Forwarded-Proto", "https")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Body.String() != want {
			t.Errorf("%s: %d %q; want %q", sender, w.Code, w.Body, want)
		}
	}
	check("10.1.1.1:9", "https")
	check("192.0.2.1:9", "http")
	if err := s.trust([]netip.Prefix{netip.MustParsePrefix("::ffff:192.0.2.0/120")}); err != nil {
		t.Fatal(err)
	}
	check("10.1.1.1:9", "http")
	check("192.0.2.1:9", "https")
	check("[::ffff:192.0.2.1]:9", "https")
	check("[64:ff9b::192.0.2.1]:9", "http") // an address inside another, which anybody may have
	check("@", "https")
}

// newTestServer makes a server of a file with text, which logs to log.
func newTestServer(t testing.TB, text string, log *buffer) *server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(Options{Files: []string{file}, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// The address of the server lists its paths, with that of the metrics only if they are there.
func TestIndex(t *testing.T) {
	var log buffer
	s := newTestServer(t, "rules: [{name: r, limits: 9/h}]\n", &log)
	s.api.Listen(&net.UnixAddr{Net: "unix"})
	for metrics, want := range map[string]bool{Off: true, "127.0.0.1:0": false} {
		s.o.Metrics = metrics
		w := httptest.NewRecorder()
		s.http().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		paths := strings.Fields(w.Body.String())
		if w.Code != http.StatusOK || len(paths) < 7 || strings.Contains(w.Body.String(), "/metrics") != want {
			t.Fatalf("metrics %s: %d %s", metrics, w.Code, w.Body)
		}
		for _, path := range paths[1:] {
			w := httptest.NewRecorder()
			s.http().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if w.Code == http.StatusNotFound {
				t.Errorf("%s is not there", path)
			}
		}
	}
}
