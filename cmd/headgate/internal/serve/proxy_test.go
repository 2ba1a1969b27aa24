package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// serveProxy serves what a file says in front of a target, and returns the address.
func serveProxy(t *testing.T, target, text string) (address string, log *buffer) {
	t.Helper()
	log = new(buffer)
	s, err := newServer(Options{
		Files: []string{write(t, filepath.Join(t.TempDir(), "rules.yaml"), text)},
		HTTP:  Off, GRPC: Off, Debug: Off, Metrics: Off, Connections: 100,
		Proxies: []Proxy{{Listen: "127.0.0.1:0", Target: target}},
		Log:     slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.closeListeners)
	go func() { _ = s.listeners[0].serve() }() // until it is closed
	return s.listeners[0].on.Addr().String(), log
}

// A call without TLS passes, and one over the limit is denied as clients of gRPC read it.
func TestProxyOfGRPC(t *testing.T) {
	on, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(app, grpchealth.NewServer())
	go func() { _ = app.Serve(on) }()
	t.Cleanup(app.Stop)
	address, _ := serveProxy(t, "h2c://"+on.Addr().String(),
		"rules: [{name: calls, match: {path: /grpc.health.v1.Health/*}, limits: 3/h}]\n")
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, empty := grpc_health_v1.NewHealthClient(conn), &grpc_health_v1.HealthCheckRequest{}
	if r, err := client.Check(t.Context(), empty); err != nil || r.GetStatus() != 1 {
		t.Errorf("%v, %v", r, err)
	}
	_, err = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "unknown"})
	if status.Code(err) != codes.NotFound { // which is in a trailer
		t.Error(err)
	}
	stream, err := client.Watch(t.Context(), empty)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.GetStatus() != 1 {
		t.Errorf("a stream: %v, %v", r, err)
	}
	_, err = client.Check(t.Context(), empty)
	denial, _ := status.FromError(err)
	if denial.Code() != codes.ResourceExhausted || len(denial.Details()) != 1 ||
		!strings.Contains(denial.Message(), "The rule calls") {
		t.Fatalf("%v %v", err, denial.Details())
	}
	wait := denial.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
	if wait <= 0 || wait > 20*time.Minute {
		t.Error(wait)
	}
	app.Stop()
	if _, err = client.Check(t.Context(), empty); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

// Pages of other sites can read the proxy's own answers if the file says so, and those of the
// server only if the server says so.
func TestProxyForPages(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const page, other = "https://app.example.com", "https://evil.example.com"
	const rule = "rules: [{name: r, limits: 1/h}]\n"
	listed, _ := serveProxy(t, app.URL, "cors: "+page+"\n"+rule)
	all, _ := serveProxy(t, app.URL, "cors: '*'\n"+rule)
	none, _ := serveProxy(t, app.URL, rule)
	ask := func(method, address, origin string) (status int, allowed string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		h := w.Header
		if exposed := h.Get("Access-Control-Expose-Headers"); h.Get("Access-Control-Allow-Origin") != "" &&
			(!strings.Contains(exposed, "Retry-After") || !strings.Contains(h.Get("Vary"), "Origin")) {
			t.Errorf("%v", h)
		}
		return w.StatusCode, h.Get("Access-Control-Allow-Origin") +
			strings.Replace(h.Get("Access-Control-Allow-Credentials"), "true", " with cookies", 1)
	}
	for _, address := range []string{listed, all, none} {
		for range 3 { // preflights cost nothing
			if status, allowed := ask(http.MethodOptions, address, page); status != 200 || allowed != "" {
				t.Errorf("a preflight: %d %s", status, allowed)
			}
		}
		if status, allowed := ask(http.MethodGet, address, page); status != 200 || allowed != "" {
			t.Errorf("an answer of the server: %d %s", status, allowed)
		}
	}
	app.Close()
	for _, c := range []struct{ address, origin, want string }{
		{listed, page, page + " with cookies"}, {listed, other, ""}, {all, page, "*"}, {none, page, ""},
	} {
		for method, code := range map[string]int{http.MethodGet: 429, http.MethodOptions: 502} {
			if status, allowed := ask(method, c.address, c.origin); status != code || allowed != c.want {
				t.Errorf("%s from %s: %d %s; want %s", method, c.origin, status, allowed, c.want)
			}
		}
	}
}

// While the server behind the proxy is down, the log does not grow with each request.
func TestProxyWarnsOnce(t *testing.T) {
	address, log := serveProxy(t, "http://127.0.0.1:1", "rules: [{name: r, limits: 100/h}]\n")
	for range 30 {
		r, err := http.Get("http://" + address) //nolint:noctx // a test
		if err != nil || r.StatusCode != http.StatusBadGateway {
			t.Fatal(r, err)
		}
		_ = r.Body.Close()
	}
	if n := strings.Count(log.String(), "the server behind the proxy does not answer"); n != 1 {
		t.Errorf("%d lines for 30 requests:\n%s", n, log)
	}
}

// The trailer of a request passes, but what a server may take for a field of its header.
func TestProxyPassesTrailers(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", r.Trailer.Get("X-Sum")+r.Trailer.Get("X-Forwarded-For")+
			r.Trailer.Get("Authorization"))
	}))
	defer app.Close()
	for name, rule := range map[string]string{
		"plain":  "rules: [{name: r, limits: 9/h}]\n",
		"peeked": "rules: [{name: r, limits: 9/h, cost: {tokens: {estimate: 1}}}]\n",
	} {
		address, _ := serveProxy(t, app.URL, rule)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address,
			io.MultiReader(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		r.Trailer = http.Header{
			"X-Sum": {"7"}, "X-Forwarded-For": {"192.0.2.7"}, "Authorization": {"Basic YQ=="},
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if got := w.Header.Get("X-Got"); got != "7" {
			t.Errorf("%s: %d %q", name, w.StatusCode, got)
		}
	}
}
