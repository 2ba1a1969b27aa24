package serve

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/internal/redistest"
)

const oneDomain = "domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 1}}]\n"

// write writes a file, and returns its name.
func write(t testing.TB, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// environmentOf reads variables, each as "NAME=value".
func environmentOf(t *testing.T, variables ...string) *environment.Settings {
	t.Helper()
	e, err := environment.Read(func(name string) (string, bool) {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// startEnvironment makes a server by variables that reads oneDomain, or the files of o.
func startEnvironment(t *testing.T, o Options, variables ...string) *server {
	t.Helper()
	o.Environment = environmentOf(t, variables...)
	if o.Files == nil {
		o.Files = []string{write(t, filepath.Join(t.TempDir(), "d.yaml"), oneDomain)}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// A directory without files is a configuration without limits.
func TestEmptyDirectory(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]int{
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=false": http.StatusOK,
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true":  http.StatusInternalServerError,
	} {
		root := t.TempDir()
		s := startEnvironment(t, Options{Store: "memory:", Files: []string{}}, variable,
			"RUNTIME_ROOT="+root)
		req := envoy.Request{Domain: "d", Descriptors: make([]envoy.Descriptor, 1)}
		var resp envoy.Response
		if err := s.limiter.Decide(t.Context(), &req, &resp); err != nil || resp.Code != envoy.OK {
			t.Errorf("%s: %v, %v; want OK", variable, resp.Code, err)
		}
		s.health.set(waitsForStore, false)
		status, text := answerOf(t, s.http(), http.MethodGet, "/healthcheck")
		if status != want {
			t.Errorf("%s: %d %s; want %d", variable, status, text, want)
		}
		write(t, filepath.Join(root, "config.d.yaml"), oneDomain)
		if err := s.watcher.Reload(); err != nil {
			t.Fatal(err)
		}
		if status, text = answerOf(t, s.http(), http.MethodGet, "/healthcheck"); status != http.StatusOK {
			t.Errorf("%s, with a file: %d %s", variable, status, text)
		}
	}
}

// CACHE_KEY_PREFIX is in front of the keys of counters, once.
func TestKeyPrefix(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := startEnvironment(t, Options{}, "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr,
		"CACHE_KEY_PREFIX=mine:")
	req := envoy.Request{Domain: "d", Descriptors: []envoy.Descriptor{
		{Entries: []envoy.Entry{{Key: "k", Value: "v"}}},
	}}
	if err := s.limiter.Decide(t.Context(), &req, new(envoy.Response)); err != nil {
		t.Fatal(err)
	}
	keys, err := redis.Do(t.Context(), "KEYS", "*|k=v*")
	if err != nil || !strings.HasPrefix(keys, "mine:") || strings.Count(keys, "mine:") != 1 {
		t.Errorf("the keys are %q, %v", keys, err)
	}
}

func TestKeyPrefixBesideStore(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]int{"CACHE_KEY_PREFIX=mine:": 1, "LOG_FORMAT=text": 0} {
		var log buffer
		startEnvironment(t, Options{Store: "memory:", Log: slog.New(slog.NewTextHandler(&log, nil))},
			variable)
		got := strings.Count(log.String(), "CACHE_KEY_PREFIX is set and has no effect: --store is given")
		if got != want {
			t.Errorf("%s: %d warnings; want %d:\n%s", variable, got, want, log.String())
		}
	}
}
