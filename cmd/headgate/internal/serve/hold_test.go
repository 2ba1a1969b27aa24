package serve

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/eventually"
)

// With the rules of docs/waiting.md, a request over the limit waits, and a server that stops
// answers it at once.
func TestServerThatStopsAnswersThoseThatWait(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.Replace(text, "10/s burst 1", "1/19s", 1)
	text = strings.Replace(text, "max_wait: 2s", "max_wait: 20s", 1)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil { //nolint:gosec,nolintlint // of the test
		t.Fatal(err)
	}
	s, err := newServer(Options{
		Files: []string{file}, Log: slog.New(slog.DiscardHandler), Grace: time.Hour,
		HTTP: "127.0.0.1:0", GRPC: Off, Debug: Off, Metrics: Off, Connections: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	get := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+s.listeners[0].on.Addr().String()+"/auth", nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("X-Forwarded-Uri", "/v1/chat")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if status := get(); status != http.StatusOK {
		t.Errorf("the first: %d", status)
	}
	answer := make(chan int, 1)
	go func() { answer <- get() }()
	const waits = "\nheadgate_rule_waiting{rule=\"model\"} 1\n"
	eventually.True(t, "a request waits", func() bool {
		_, metrics := answerOf(t, s.http(), http.MethodGet, "/metrics")
		return strings.Contains(metrics, waits)
	})
	stop()
	if status := <-answer; status != http.StatusTooManyRequests {
		t.Errorf("the one that waits: %d", status)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
