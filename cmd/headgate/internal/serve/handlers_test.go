package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// A path that ServeMux would redirect gets a problem: clients that follow redirects would otherwise
// charge or reset another key.
func TestPathsAreNotRedirected(t *testing.T) {
	s, err := newServer(Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	handler := s.http()
	for path, want := range map[string]int{
		"//v1/take": http.StatusNotFound, "/v1/../v1/take": http.StatusNotFound,
		"/v1": http.StatusNotFound, "/v1/keys/example": http.StatusNotFound,
		"//healthcheck": http.StatusNotFound, "/-/healthy": http.StatusOK, "/auth": http.StatusBadRequest,
		"/v1/openapi.yaml": http.StatusOK,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL.Path = path
		handler.ServeHTTP(w, r)
		kind := w.Header().Get("Content-Type")
		if w.Code != want || want == http.StatusNotFound && kind != "application/problem+json" {
			t.Errorf("%s: %d %s; want %d and a problem", path, w.Code, kind, want)
		}
	}
}

// A reload tells what is wrong with the files, so it asks for a token as /v1/ does.
func TestReloadAsksForAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "api: {tokens: [0123456789abcdef]}\nrules: [{name: r, limits: [1/h]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(Options{Files: []string{file}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"Authorization", "Bearer 0123456789abcdef", http.StatusOK},
		{"Authorization", "Bearer other", http.StatusUnauthorized},
		{"X-None", "", http.StatusUnauthorized},
		{"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/-/reload", nil)
		r.Header.Set(c.name, c.value)
		w := httptest.NewRecorder()
		s.http().ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %s: %d; want %d", c.name, c.value, w.Code, c.want)
		}
	}
}
