package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/fallback"
)

// An outage is two lines, whatever notices it first, and a few late calls are none.
func TestOutageLog(t *testing.T) {
	down := errors.New("refused")
	for name, c := range map[string]struct {
		failures []uint64
		ping     error
		degraded bool
		circuit  bool // opens first
		want     string
	}{
		"one late call now and then": {failures: []uint64{1, 2, 2, 3, 4}},
		"many late calls":            {failures: []uint64{3, 9, 9, 10}, want: "calls of the store fail failed=9, decides again failed=10"},
		"Redis is gone":              {failures: []uint64{0, 9, 40}, ping: down, want: "does not answer, decides again failed=40"},
		"a circuit opens first": {
			failures: []uint64{5, 9, 9}, ping: down, degraded: true, circuit: true,
			want: "the store failed, decides again failed=9",
		},
	} {
		var out bytes.Buffer
		l := &outageLog{log: slog.New(slog.NewTextHandler(&out, nil)), store: "redis"}
		l.look(nil, fallback.Stats{})
		for i, n := range c.failures {
			if c.circuit && i == 0 {
				l.begin("the store failed")
			}
			l.look(c.ping, fallback.Stats{Failures: n, Degraded: c.degraded})
		}
		last := c.failures[len(c.failures)-1]
		for range calmPings + 5 {
			l.look(nil, fallback.Stats{Failures: last})
		}
		lines := slices.Collect(strings.Lines(out.String()))
		wants := slices.DeleteFunc(strings.Split(c.want, ", "), func(s string) bool { return s == "" })
		for i := range max(len(lines), len(wants)) {
			words, number, _ := strings.Cut(append(wants, "no more lines")[min(i, len(wants))], " failed=")
			if i >= len(lines) || !strings.Contains(lines[i], words) ||
				number != "" && !strings.Contains(lines[i], " failed="+number) {
				t.Errorf("%s: want %q, got\n%s", name, c.want, out.String())
				break
			}
		}
	}
}
