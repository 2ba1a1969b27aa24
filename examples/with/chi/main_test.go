package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/snippets"
)

func TestHandler(t *testing.T) {
	h, err := newHandler(netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	for i, c := range []struct {
		path, client string
		status       int
		field        string // what RateLimit begins with
	}{
		{"/items/1", "192.0.2.1", 200, `"20/m";r=19;`},
		{"/export", "192.0.2.1", 200, `"20/m";r=9;`},
		{"/export", "192.0.2.1", 429, `"20/m";r=9;`},
		{"/export", "198.51.100.7, 192.0.2.1", 429, `"20/m";r=9;`}, // the client wrote the first one
		{"/items/2", "192.0.2.1", 200, `"20/m";r=8;`},
		{"/export", "192.0.2.2", 200, `"20/m";r=10;`},
		{"/health", "192.0.2.1", 200, ""},
		{"/nowhere", "192.0.2.1", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", c.client)
		w, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(w.Body)
		w.Body.Close()
		field := w.Header.Get("Ratelimit")
		if err != nil || w.StatusCode != c.status || !strings.HasPrefix(field, c.field) ||
			(field == "") != (c.field == "") {
			t.Errorf("request %d: %d, RateLimit: %s, %v", i+1, w.StatusCode, field, err)
		}
		if c.status == http.StatusTooManyRequests && (w.Header.Get("Retry-After") == "" ||
			!strings.Contains(string(body), "The limit 20/m is exceeded.")) {
			t.Errorf("request %d: %v %s", i+1, w.Header, body)
		}
	}
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../../docs/frameworks.md", "chi", "main.go")
}
