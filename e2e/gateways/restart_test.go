//go:build gateways

package gateways

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// countedRules returns version n of rules: one limit, whose calls are counted, is in all versions.
func countedRules(redis string, n int) string {
	return fmt.Sprintf(`store: %s
store_timeout: 10s # a busy machine is no outage
domains:
  - domain: edge
    descriptors:
      - {key: user, limit: %d/d}
      - {key: other%d, limit: %d/s}
`, redis+redistest.Patient, counted, n, 1+n)
}

const counted = 500

// instances are servers with one Redis behind the page's Envoy, which checks their health.
type instances struct {
	dir, redis string
	web, grpc  []string // addresses
	stops      []func()
	ask        func() int // a call by Envoy
	calls      atomic.Int64
}

func startInstances(t *testing.T, n int) *instances {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	s := &instances{dir: directory(t), redis: redistest.Start(t).URL(), stops: make([]func(), n)}
	const endpoint = "        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8081}}}\n"
	var endpoints strings.Builder
	for range n {
		s.web, s.grpc = append(s.web, freeAddress(t)), append(s.grpc, freeAddress(t))
		endpoints.WriteString(moved(endpoint, "8081", s.grpc[len(s.grpc)-1]))
	}
	health := regexp.MustCompile(`(?m)^    health_checks:\n    - .*\n`).FindString(read(t, "envoy.md"))
	config := (outage{asks: "ratelimit"}).files(t, "")["envoy.yaml"]
	config = edit(t, config, "  - name: headgate\n", "  - name: headgate\n"+health)
	address := freeAddress(t)
	config = moved(edit(t, config, endpoint, endpoints.String()), "8000", address)
	write(t, s.dir, map[string]string{
		"headgate.yaml": countedRules(s.redis, 0), "envoy.yaml": moved(config, "3000", app.Listener.Addr().String()),
	})
	for i := range n {
		s.start(t, i)
	}
	start(t, s.dir, gateways["Envoy"].command...)
	until(t, "Envoy listens", func() bool { return reachable(t, address) })
	client := newClient(t)
	s.ask = func() int {
		s.calls.Add(1)
		return fetch(t, client, "http://"+address, nil, "client")
	}
	until(t, "Envoy asks", func() bool {
		return fetch(t, client, "http://"+address, nil, "first") == http.StatusOK
	})
	return s
}

// start starts an instance, and waits until it is ready.
func (s *instances) start(t *testing.T, i int) {
	t.Helper()
	_, s.stops[i] = run(t, s.dir, headgate, "serve", "--config", "headgate.yaml",
		"--http", s.web[i], "--grpc", s.grpc[i], "--debug", "off", "--drain-delay", "2s")
	until(t, "headgate is ready", func() bool {
		return reachable(t, s.web[i]) &&
			fetch(t, http.DefaultClient, "http://"+s.web[i]+"/healthcheck", nil, "") == http.StatusOK
	})
}

// loaded sends 400 calls a second while happen lasts.
func (s *instances) loaded(happen func()) (got tally) {
	var over atomic.Bool
	counts := make(chan tally)
	go func() { counts <- send(400, func(int) bool { return !over.Load() }, s.ask) }()
	defer func() { // also if happen ends the test
		over.Store(true)
		got = <-counts
	}()
	happen()
	return got
}

// more waits until n more calls were sent.
func (s *instances) more(t *testing.T, n int64) {
	t.Helper()
	before := s.calls.Load()
	until(t, "more calls", func() bool { return s.calls.Load() > before+n })
}

// Two instances that are restarted in turn, by the page's health checks and --drain-delay, answer
// nearly all calls, and count exactly.
func TestRestartsBehindEnvoy(t *testing.T) {
	t.Parallel()
	s := startInstances(t, 2)
	got := s.loaded(func() {
		for i := range s.stops {
			s.stops[i]()
			s.start(t, i)
			s.more(t, counted) // so the limit is reached, however slow the machine is
		}
	})
	t.Logf("passed, denied, failed: %v", got)
	if got.unanswered > got.all()/100 {
		t.Errorf("%d of %d calls failed", got.unanswered, got.all())
	}
	if got.passed > counted || got.passed+got.unanswered < counted {
		t.Errorf("%d calls passed; want %d", got.passed, counted)
	}
}

// No call fails while the rules are loaded 30 times, and the count goes on.
func TestReloadsBehindEnvoy(t *testing.T) {
	t.Parallel()
	s := startInstances(t, 2)
	got := s.loaded(func() {
		for n := range 30 {
			write(t, s.dir, map[string]string{"new": countedRules(s.redis, n)})
			if err := os.Rename(filepath.Join(s.dir, "new"), filepath.Join(s.dir, "headgate.yaml")); err != nil {
				t.Fatal(err)
			}
			for i := range s.web {
				status := fetch(t, http.DefaultClient, "http://"+s.web[i]+"/-/reload", strings.NewReader(""), "")
				if status != http.StatusOK {
					t.Errorf("reload %d: %d", n, status)
				}
			}
			s.more(t, 100)
		}
	})
	t.Logf("passed, denied, failed: %v", got)
	if want := (tally{counted, got.all() - counted, 0}); got != want {
		t.Errorf("passed, denied, failed: %v; want %v", got, want)
	}
}
