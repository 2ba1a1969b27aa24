package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/cmd/headgate/internal/serve/watch"
	"github.com/headgate/headgate/internal/eventually"
)

// answerOf returns the status and the body of an answer.
func answerOf(t *testing.T, h http.Handler, method, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil))
	return w.Code, w.Body.String()
}

// With xDS, a reload of files that are not read leaves the limits as the management server sent them.
func TestReloadWithXDS(t *testing.T) {
	t.Parallel()
	var log buffer
	s := startEnvironment(t, Options{
		Store: "memory:", Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, "CONFIG_TYPE=GRPC_XDS_SOTW")
	domain := &envoy.Domain{Name: "x", Descriptors: []envoy.Spec{
		{Key: "k", RateLimit: &envoy.RateLimit{Unit: "hour", RequestsPerUnit: 1}},
	}}
	if err := s.useXDS([]*envoy.Domain{domain}); err != nil {
		t.Fatal(err)
	}
	_, before := answerOf(t, s.debug(), http.MethodGet, "/rlconfig")
	s.api.Listen(&net.UnixAddr{Net: "unix"})
	status, text := answerOf(t, s.http(), http.MethodPost, "/-/reload")
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, "xds: ") {
		t.Errorf("the reload: %d %s", status, text)
	}
	_, after := answerOf(t, s.debug(), http.MethodGet, "/rlconfig")
	if !strings.HasPrefix(before, "x.k: ") || after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	_, values := answerOf(t, s.http(), http.MethodGet, "/metrics")
	if !strings.Contains(values, "\nheadgate_config_last_load_success 1\n") ||
		!strings.Contains(values, "\nratelimit_service_config_load_error 0\n") {
		t.Errorf("the reload counts as a failed load:\n%s", values)
	}
	if strings.Contains(log.String(), "invalid") {
		t.Error(log.String())
	}
}

// A read of a file that hangs, as on a network file system, does not keep the server from ending.
func TestAReadThatHangs(t *testing.T) {
	t.Parallel()
	s := startEnvironment(t, Options{
		Store: "memory:", HTTP: Off, GRPC: Off, Debug: Off, Metrics: Off, Grace: time.Millisecond,
	})
	reading, hang := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(hang) })
	s.watcher = watch.New(watch.Options{
		Hash:   func() string { close(reading); <-hang; return "" },
		Load:   func() error { return nil },
		Report: func(error) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	<-reading
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server has not ended")
	}
}

// The log of a fault says what is in force.
func TestFaultsAreLogged(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "d.yaml"), "domain: 1: 2")
	var log buffer
	s := startEnvironment(t, Options{
		Store: "memory:", Files: []string{file}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	s.reported(s.firstErr) // as Run does
	const none, current = "there is none in force", "the current one stays in force"
	if text := log.String(); !strings.Contains(text, none) || strings.Contains(text, current) {
		t.Error(text)
	}
	write(t, file, oneDomain)
	if err := s.watcher.Reload(); err != nil {
		t.Fatal(err)
	}
	write(t, file, "domain: 1: 2")
	if err := s.watcher.Reload(); err == nil {
		t.Error("the fault is not found")
	}
	if text := log.String(); strings.Count(text, none) != 1 || strings.Count(text, current) != 1 {
		t.Error(text)
	}
}

// A reload that is asked for before the server starts is not lost.
func TestEarlyReload(t *testing.T) {
	t.Parallel()
	var log buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	o := Options{
		Files: []string{write(t, filepath.Join(t.TempDir(), "d.yaml"), oneDomain)},
		Store: "memory:", HTTP: "127.0.0.1:0", GRPC: Off, Debug: Off, Metrics: Off,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	reload := make(chan os.Signal, 1)
	reload <- syscall.SIGHUP
	o.Reload = reload
	go func() { ended <- Run(ctx, o) }()
	eventually.True(t, "the files are read again", func() bool {
		return strings.Contains(log.String(), "was loaded")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The log says, in one order, which settings have no effect, and which have none before a restart.
func TestSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	const ofStore = "store, when_store_fails, store_timeout and instances of the file have no effect"
	const ofListen = "listen of the file has no effect"
	c := config.Config{
		Store: "redis://127.0.0.1:2", WhenStoreFails: config.Open, Instances: 3,
		Listen: config.Listen{HTTP: "127.0.0.1:2"}, TLS: certs.Files{Cert: "c", Key: "k"},
	}
	for name, test := range map[string]struct {
		env   *environment.Settings
		store string
		want  []string // a field, or the beginning of a line
	}{
		"file":      {nil, "", []string{"store", "when_store_fails", "instances", "listen", "tls"}},
		"variables": {&environment.Settings{}, "", []string{ofStore, ofListen, "tls"}},
		"variables and a store": {&environment.Settings{}, "memory:",
			[]string{ofListen, "when_store_fails", "instances", "tls"}},
	} {
		var log buffer
		s := &server{
			env: test.env, o: Options{Store: test.store}, first: &config.Config{},
			log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		s.warnOfUnused(&c)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(test.want) {
			t.Errorf("%s: the log is\n%s\nwant %q", name, log.String(), test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.HasSuffix(lines[i], "a restart\" field="+want) &&
				!strings.Contains(lines[i], `msg="`+want) {
				t.Errorf("%s: line %d is %s; want %q", name, i, lines[i], want)
			}
		}
	}
}

// A load says which rules are not the same, and which have other overrides.
func TestChangedRules(t *testing.T) {
	parse := func(text string) *config.Config {
		t.Helper()
		c, err := config.Parse("test", []byte(text), config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := parse("rules: [{name: a, key: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s}, {name: gone, key: ip, limits: 1/s}]")
	after := parse("rules: [{name: a, key: ip, limits: 1/s}, {name: b, key: ip, limits: 2/s, mode: shadow}, {name: new, key: ip, limits: 1/s}]\n" +
		"overrides: [{rule: a, key: 'ip:192.0.2.1', ban: true}]")
	if got := fmt.Sprint(changed(before, after)); got != "[b gone new override of a]" {
		t.Errorf("changed: %s", got)
	}
	if got := changed(after, after); len(got) > 0 {
		t.Errorf("changed: %v", got)
	}
}
