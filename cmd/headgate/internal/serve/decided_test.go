package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// idleServer returns a server that serves nothing, and a denial of its rule.
func idleServer(tb testing.TB, noConsole bool) (*server, rules.Event) {
	tb.Helper()
	file := write(tb, filepath.Join(tb.TempDir(), "rules.yaml"), "rules: [{name: login, key: ip, limits: 2/h}]\n")
	s, err := newServer(Options{
		Files: []string{file}, Log: slog.New(slog.DiscardHandler), NoConsole: noConsole,
		HTTP: Off, GRPC: Off, Debug: Off, Metrics: Off, Connections: DefaultConnections,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.close)
	return s, rules.Event{
		Rule: &s.first.Rules[0], Key: "ip:192.0.2.1", Cost: 1, Outcome: rules.Denied,
		Decision: headgate.Decision{RetryAfter: 1},
	}
}

// A denial allocates nothing, with the console and without.
func TestADenialAllocatesNothing(t *testing.T) {
	for _, noConsole := range []bool{true, false} {
		s, e := idleServer(t, noConsole)
		if n := testing.AllocsPerRun(1000, func() { s.decided(e) }); n != 0 {
			t.Errorf("without console %v: %v allocations", noConsole, n)
		}
	}
}

// A client that leaves before its request is decided is neither counted nor logged: no one failed.
func TestAClientThatLeftIsNoDecision(t *testing.T) {
	s, e := idleServer(t, true)
	var log strings.Builder
	s.log, s.o.LogDecisions = slog.New(slog.NewTextHandler(&log, nil)), 1
	e.Outcome = rules.Failed
	for _, e.Err = range []error{fmt.Errorf("redisstore: %w", context.Canceled), io.EOF} {
		s.decided(e)
	}
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	counted := "headgate_decisions_total{outcome=\"error\",rule=\"login\"} 1\n"
	if !strings.Contains(w.Body.String(), counted) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("logged\n%s\nand counted\n%s", &log, w.Body)
	}
}

// BenchmarkDecided is the cost of a denial beside the decision itself.
func BenchmarkDecided(b *testing.B) {
	for name, noConsole := range map[string]bool{"console off": true, "no viewer": false} {
		b.Run(name, func(b *testing.B) {
			s, e := idleServer(b, noConsole)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s.decided(e)
				}
			})
		})
	}
}
