package ways

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/cmd/headgate/internal/serve"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// requests is how many requests a walk makes. Nothing in the background happens as often meanwhile.
const requests = 1000

// walks make the requests of the ways, one after another. They return when the server is done with
// all of them.
var walks = map[string]func(*testing.T){
	"In memory":                func(t *testing.T) { walkMiddleware(t, headgate.NewMemory()) },
	"In Redis":                 walkRedis,
	"Over Envoy's protocol":    walkEnvoy,
	"Under a rule":             walkRule,
	"Under a budget of tokens": walkTokens,
}

// repeat calls a request until it was granted often enough. A busy machine can make Redis late.
func repeat(granted func() bool, times int) {
	for times > 0 {
		if granted() {
			times--
		}
	}
}

func walkMiddleware(t *testing.T, store headgate.Store) {
	t.Helper()
	limiter, err := headgate.NewLimiter(store, headgate.PerHour(1e6))
	if err != nil {
		t.Fatal(err)
	}
	limited, err := httplimit.New(limiter, httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(limited(answering("text/plain", "hello")))
	defer server.Close()
	repeat(func() bool { return send(t, http.MethodGet, server.URL, "") }, requests)
}

func walkRedis(t *testing.T) {
	store, err := redisstore.Open(redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	walkMiddleware(t, store)
}

func walkEnvoy(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config"), "domain: api\ndescriptors:\n"+
		"  - key: client\n    rate_limit: {unit: hour, requests_per_unit: 1000000}\n")
	variables := map[string]string{
		"RUNTIME_ROOT": dir, "RUNTIME_WATCH_ROOT": "false", "GRPC_HOST": "127.0.0.1", "GRPC_PORT": "0",
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": redistest.Start(t).Addr,
	}
	settings, err := environment.Read(func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, serve.Options{Environment: settings})
	defer s.end()
	connection, err := grpc.NewClient(s.addresses["grpc"],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := rls.NewRateLimitServiceClient(connection)
	request := &rls.RateLimitRequest{Domain: "api", Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: "client", Value: "a"}},
	}}}
	repeat(func() bool {
		answer, err := client.ShouldRateLimit(t.Context(), request)
		return err == nil && answer.GetOverallCode() == rls.RateLimitResponse_OK
	}, requests)
}

func walkRule(t *testing.T) {
	walkProxy(t, "limits: [1000000/h]", answering("text/plain", "hello"), http.MethodGet, "")
}

func walkTokens(t *testing.T) {
	walkProxy(t, "limits: [1000000000/h], cost: {tokens: {estimate: 200, input: 1, output: 4}}",
		answering("application/json", `{"usage": {"prompt_tokens": 10, "completion_tokens": 5}}`),
		http.MethodPost, `{"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": ""}]}`)
}

// walkProxy sends requests to a server through the proxy, under one rule.
func walkProxy(t *testing.T, rule string, server http.Handler, method, body string) {
	t.Helper()
	target := httptest.NewServer(server)
	defer target.Close()
	rules := write(t, t.TempDir(), "instances: 1\nrules: [{name: api, key: ip, "+rule+"}]\n")
	s := start(t, serve.Options{
		Files: []string{rules}, Store: redistest.Start(t).URL(), GRPC: serve.Off,
		Proxies: []serve.Proxy{{Listen: "127.0.0.1:0", Target: target.URL}},
	})
	defer s.end()
	for missing := requests; missing > 0; { // as those that Redis did not decide are
		before := s.degraded(t)
		repeat(func() bool { return send(t, method, "http://"+s.addresses["proxy"], body) }, missing)
		missing = s.degraded(t) - before
	}
}

func answering(kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	})
}

// send reports whether a request was granted. Else Redis did not answer in time.
func send(t *testing.T, method, url, body string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	granted := answer.StatusCode == http.StatusOK
	if err != nil || !granted && answer.StatusCode != http.StatusServiceUnavailable {
		t.Fatal(err, answer.Status, string(text))
	}
	return granted
}

func write(t *testing.T, dir, text string) (name string) {
	t.Helper()
	name = filepath.Join(dir, "rules.yaml")
	err := cmp.Or(os.MkdirAll(dir, 0o700), os.WriteFile(name, []byte(text), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// server is headgate serve.
type server struct {
	addresses map[string]string // of its listeners
	end       func()            // returns when all requests have ended
}

func start(t *testing.T, o serve.Options) server {
	t.Helper()
	o.HTTP, o.Debug = "127.0.0.1:0", serve.Off
	o.Grace, o.Connections = serve.DefaultGrace, serve.DefaultConnections
	listening := make(listeners, 2)
	o.Log = slog.New(listening)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, o) }()
	s := server{addresses: make(map[string]string)}
	s.end = func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for len(s.addresses) < cap(listening) {
		select {
		case l := <-listening:
			s.addresses[l["listener"]] = l["address"]
		case err := <-ended:
			t.Fatal(err)
		}
	}
	return s
}

// degraded returns how many decisions were made without Redis.
func (s server) degraded(t *testing.T) (n int) {
	t.Helper()
	r, err := http.Get("http://" + s.addresses["http"] + "/metrics") //nolint:noctx // it is ours
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nheadgate_degraded_decisions_total{rule=\"api\"} ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return n
}

// listeners receives what a server logs about its listeners.
type listeners chan map[string]string

// Enabled implements [slog.Handler].
func (l listeners) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (l listeners) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "listening" {
		return nil
	}
	of := make(map[string]string)
	r.Attrs(func(a slog.Attr) bool {
		of[a.Key] = a.Value.String()
		return true
	})
	l <- of
	return nil
}

// WithAttrs implements [slog.Handler].
func (l listeners) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements [slog.Handler].
func (l listeners) WithGroup(string) slog.Handler { return l }
