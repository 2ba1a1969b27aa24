package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
)

type line struct {
	Outcome string `json:"outcome"`
	Key     string `json:"key"`
	Limit   string `json:"limit"`
	Retry   int64  `json:"retry"` // nanoseconds
	Error   string `json:"error"`
}

// logged returns what n requests of one client log.
func logged(t *testing.T, store headgate.Store, n int) (lines []line) {
	t.Helper()
	var log bytes.Buffer
	h, err := newHandler(store, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for d := json.NewDecoder(&log); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t, headgate.NewMemory(), 30)
		want := line{"denied", "ip:192.0.2.1", "10/s", 100_000_000, ""}
		if len(lines) != 1 || lines[0] != want {
			t.Errorf("%+v; want one line for 20 denials: %+v", lines, want)
		}
	})
}

// Nothing listens on port 1.
func TestErrors(t *testing.T) {
	store, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	lines := logged(t, store, 1)
	if len(lines) != 1 || lines[0].Outcome != "error" || lines[0].Error == "" {
		t.Errorf("%+v; want one error", lines)
	}
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../../docs/library-metrics.md", "slog", "main.go")
}
