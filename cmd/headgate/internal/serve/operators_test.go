package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without tokens, an operator can do something only on this machine, however the listener was given.
func TestOperatorsBeyondLoopback(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "rules.yaml"),
		"listen: {http: ':8080'}\nrules: [{name: r, limits: 1/h}]\n")
	quiet := slog.New(slog.DiscardHandler)
	for name, build := range map[string]func(t *testing.T) *server{
		"the file": func(t *testing.T) *server {
			t.Helper()
			return newServerFor(t, Options{Files: []string{file}, Log: quiet})
		},
		"the flag": func(t *testing.T) *server {
			t.Helper()
			return newServerFor(t, Options{HTTP: "0.0.0.0:8080", Log: quiet})
		},
		"the environment": func(t *testing.T) *server {
			t.Helper()
			return startEnvironment(t, Options{Store: "memory:"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := build(t)
			on, err := net.ResolveTCPAddr("tcp", s.o.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			s.api.Listen(on)
			for _, c := range [][2]string{
				{"POST", "/-/reload"}, {"POST", "/v1/refund"}, {"GET", "/v1/overrides"},
				{"DELETE", "/v1/keys/r/k"}, {"DELETE", "/v1/overrides/r/k"}, {"PUT", "/v1/overrides"},
			} {
				status, text := answerOf(t, s.http(), c[0], c[1])
				if status != http.StatusForbidden || !strings.Contains(text, "set api.tokens in the rules file") {
					t.Errorf("%s: %d %s", c, status, text)
				}
			}
			for negative, want := range map[string]int{"true": http.StatusForbidden, "false": http.StatusOK} {
				w := httptest.NewRecorder()
				s.http().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/json", strings.NewReader(
					`{"domain":"d","descriptors":[{"entries":[{"key":"k"}],"hits_addend":1,"is_negative_hits":`+negative+`}]}`)))
				if w.Code != want {
					t.Errorf("/json, negative hits %s: %d %s, want %d", negative, w.Code, w.Body, want)
				}
			}
			if status, text := answerOf(t, s.http(), "POST", "/v1/peek"); status != http.StatusBadRequest {
				t.Errorf("a decision: %d %s", status, text)
			}
		})
	}
}

func newServerFor(t *testing.T, o Options) *server {
	t.Helper()
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// On a loopback listener, this machine may reload, and a name that points to it may not.
func TestOperatorsOnLoopback(t *testing.T) {
	t.Parallel()
	r := serveHTTP(t, Options{})
	if status, text := r.do(http.MethodPost, "/-/reload", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if status, text := r.doAs("evil.example", http.MethodPost, "/-/reload"); status != http.StatusForbidden {
		t.Errorf("by another name: %d %s", status, text)
	}
}

// The debug listener serves no page of another site, and not the arguments, which may have a
// password.
func TestDebugListener(t *testing.T) {
	t.Parallel()
	r := serveHTTP(t, Options{Debug: "127.0.0.1:0"})
	for _, l := range r.listeners {
		if l.name == "debug" {
			r.url = "http://" + l.on.Addr().String()
		}
	}
	for _, path := range []string{"/", "/stats", "/rlconfig", "/debug/pprof/"} {
		if status, _ := r.get(path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		if status, text := r.doAs("evil.example", http.MethodGet, path); status != http.StatusForbidden {
			t.Errorf("%s by another name: %d %s", path, status, text)
		}
	}
	if _, text := r.get("/debug/pprof/cmdline"); text != os.Args[0] {
		t.Errorf("the command line is %q, want %q", text, os.Args[0])
	}
}

// doAs asks for a path of the host that name names.
func (r *running) doAs(name, method, path string) (status int, text string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Host = name
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
