package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/problem"
)

// edge is a proxy in front of a server.
type edge struct {
	store   headgate.Store
	url     string
	engine  *rules.Engine
	permits *concurrency.Memory
	handler http.Handler
}

// serve starts a server and a proxy in front of it.
func serve(t *testing.T, app http.HandlerFunc, trust string, list ...rules.Rule) *edge {
	t.Helper()
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	return serveTarget(t, server.URL, trust, list...)
}

func serveTarget(t *testing.T, target, trust string, list ...rules.Rule) *edge {
	t.Helper()
	return serveStore(t, headgate.NewMemory(), target, trust, list...)
}

func serveStore(
	t *testing.T, store headgate.Store, target, trust string, list ...rules.Rule,
) *edge {
	t.Helper()
	e := newEdge(t, store, target, trust, list...)
	server := httptest.NewServer(e.handler)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func newEdge(
	t testing.TB, store headgate.Store, target, trust string, list ...rules.Rule,
) *edge {
	t.Helper()
	set, err := rules.NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{store: store, permits: concurrency.NewMemory()}
	e.engine = rules.New(e.store, e.permits, rules.Options{})
	e.engine.Use(set)
	var trusted []netip.Prefix
	if trust != "" {
		trusted = append(trusted, netip.MustParsePrefix(trust))
	}
	client, err := rules.ClientAddress(trusted)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Client: client, Trusted: func(r *http.Request) bool { return rules.IsFrom(r, trusted) },
		Log: slog.New(slog.DiscardHandler),
	}
	if e.handler, err = New(e.engine, target, o); err != nil {
		t.Fatal(err)
	}
	return e
}

func per(n int64) []headgate.Limit { return []headgate.Limit{headgate.PerHour(n)} }

// get sends a request with header fields, given as "Name: value".
func get(t *testing.T, url string, fields ...string) reply {
	t.Helper()
	r := request(t.Context(), t, url, fields...)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return reply{res, string(b)}
}

// reply is a response with its body.
type reply struct {
	*http.Response

	text string
}

func request(ctx context.Context, t *testing.T, url string, fields ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func (e *edge) left(t *testing.T, rule, key string) int64 {
	t.Helper()
	terms, err := e.engine.Terms(rule, key)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.store.Take(t.Context(), headgate.Request{Key: key, Limit: terms.Limits[0]})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// until waits until ok, for a minute at most.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

func TestLimitsAndFields(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ratelimit-Limit", "9")
		w.Header().Set("X-Ratelimit-Remaining", "9")
		w.Header().Set("Ratelimit-Limit", "9") // of an older draft
		w.Header().Set("Ratelimit-Reset", "9")
		w.Header().Set("Retry-After", "77")
		w.Header().Set("X-Got", r.Method+" "+r.Host+" "+r.RequestURI)
	}, "", rules.Rule{Name: "two", Match: rules.Match{Path: "/a/*"}, Limits: per(2)},
		rules.Rule{
			Name: "hidden", Match: rules.Match{Path: "/hidden"}, Limits: per(9),
			Reply: rules.Reply{Hides: httplimit.AllFields},
		})
	for i := range 2 {
		r := get(t, e.url+"/a/b%2Fc?x;y=%zz&cost=0", "RateLimit: two;r=9", "Cost: 0")
		want := "GET " + strings.TrimPrefix(e.url, "http://") + " /a/b%2Fc?x;y=%zz&cost=0"
		if got := r.Header.Get("X-Got"); got != want {
			t.Errorf("the server got %s; want %s", got, want)
		}
		h := r.Header
		if got := h.Values("X-Ratelimit-Remaining"); len(got) != 1 || got[0] != fmt.Sprint(1-i) ||
			h.Get("X-Ratelimit-Limit") != "2" || h.Get("Ratelimit-Limit")+h.Get("Ratelimit-Reset") != "" ||
			h.Get("Retry-After") != "77" ||
			!strings.HasPrefix(h.Get("Ratelimit"), fmt.Sprintf(`"two";r=%d;t=`, 1-i)) {
			t.Errorf("%v", h)
		}
	}
	r := get(t, e.url+"/a/b")
	var p problem.Problem
	if err := json.Unmarshal([]byte(r.text), &p); err != nil ||
		r.StatusCode != http.StatusTooManyRequests ||
		p.Status != 429 || r.Header.Get("Retry-After") == "77" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %+v, %v: %v", r.StatusCode, p, err, r.Header)
	}
	// The fields of the server stay where no rule applies, or all that apply hide theirs.
	for _, path := range []string{"/free", "/hidden"} {
		r = get(t, e.url+path)
		if r.StatusCode != http.StatusOK || r.Header.Get("X-Ratelimit-Limit") != "9" ||
			r.Header.Get("Ratelimit") != "" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
	}
}

// A server behind https gets its own host, which its certificate has. The rules see the client's.
func TestHostOfHTTPS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Got", r.Host+" for "+r.Header.Get("X-Forwarded-Host")+" "+r.URL.String())
	}))
	defer server.Close()
	e := newEdge(t, headgate.NewMemory(), server.URL+"/api", "", rules.Rule{
		Name: "host", Match: rules.Match{Hosts: []string{"client.example"}}, Limits: per(1),
	})
	e.handler.(*handler).proxy.Transport = server.Client().Transport
	for _, want := range []string{
		"200 " + server.Listener.Addr().String() + " for client.example /api/v1?a", "429 ",
	} {
		w := httptest.NewRecorder()
		e.handler.ServeHTTP(w, httptest.NewRequestWithContext(
			t.Context(), http.MethodGet, "http://client.example/v1?a", nil))
		if got := fmt.Sprint(w.Code, " ", w.Header().Get("X-Got")); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// echo answers with the fields that it got.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := json.Marshal(r.Header)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
}

func echoed(t *testing.T, r reply) http.Header {
	t.Helper()
	var h http.Header
	if err := json.Unmarshal([]byte(r.text), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

var forged = []string{
	"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: other",
	"X-Forwarded-Uri: /free", "X-Forwarded-Prefix: /x", "X-Real-IP: 203.0.113.9",
	"X-Original-URI: /free", "X-Original-URL: /free", "X_Rewrite_URL: /free", "Forwarded: for=203.0.113.9", "Connection: X-Forwarded-Port, X-Hop",
	"X-Forwarded-Port: 1", "X-Hop: 1", "Te: gzip", "X-Kept: 1",
}

func TestForgedFields(t *testing.T) {
	e := serve(t, echo, "",
		rules.Rule{Name: "ip", Key: []rules.KeyPart{{Source: "ip"}}, Limits: per(9)})
	h := echoed(t, get(t, e.url+"/", forged...))
	host := strings.TrimPrefix(e.url, "http://")
	for name, want := range map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": host,
		"X-Forwarded-Uri": "", "X-Forwarded-Prefix": "", "X-Real-Ip": "", "X-Original-Uri": "",
		"X-Original-Url": "", "X_rewrite_url": "",
		"Forwarded": "", "X-Forwarded-Port": "", "X-Hop": "", "Te": "", "Connection": "", "X-Kept": "1",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	if got := e.left(t, "ip", "ip:127.0.0.1"); got != 8 {
		t.Errorf("%d remain of the client", got)
	}
}

// A trailer brings no field that the proxy removes from a header, nor a key that no rule has seen.
func TestTrailerOfARequest(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range r.Trailer {
			w.Header()["Got-"+name] = values
		}
	}, "127.0.0.0/8", rules.Rule{Name: "key", Limits: per(99), Key: []rules.KeyPart{
		{Source: "header", Name: "X-Api-Key|X-Other"}, {Source: "cookie", Name: "session"},
	}, Cost: rules.Cost{RequestHeader: "X-Cost"}, Headroom: rules.Headroom{
		Header: "X-Class", Classes: []rules.Class{{Name: "batch", Percent: 50}},
	}})
	for name, passes := range map[string]bool{
		"Grpc-Status": true, "Digest": true, "Forwarded": false, "Upgrade": false,
		"Http2-Settings": false, "Cookie": false, "Authorization": false, "X-Hop": false,
		"X-Api-Key": false, "X-Other": false, "X-Cost": false, "X-Class": false,
		"X_real_ip": false,
	} {
		r := send(t, e, "POST / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, x-hop\r\nTrailer: "+name+
			"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"+name+": value\r\n\r\n")
		got := r.Header.Get("Got-" + name)
		if r.StatusCode != http.StatusOK || (got == "value") != passes {
			t.Errorf("%s: %d, the server got %q; want passed: %t", name, r.StatusCode, got, passes)
		}
	}
}

// Servers that read header fields as CGI does take these for the ones without underscores.
func TestSpellingsOfForgedFields(t *testing.T) {
	spellings := []string{
		"X_Forwarded_For: 6.6.6.6", "x_forwarded-for: 6.6.6.6", "X-Forwarded_For: 6.6.6.6",
		"X_FORWARDED_PROTO: 6.6.6.6", "X_Forwarded_Uri: 6.6.6.6", "X_Real_IP: 6.6.6.6",
		"X-Real_Ip: 6.6.6.6", "X_Original_URI: 6.6.6.6", "X.Original-Method: 6.6.6.6",
		"X~Forwarded~For: 6.6.6.6", "X_Kept: 1", "X_Forwarded: 1",
	}
	for _, trust := range []string{"", "127.0.0.0/8"} { // a trusted proxy may let them through
		e := serve(t, echo, trust)
		h := echoed(t, get(t, e.url, spellings...))
		for name, values := range h {
			if slices.Contains(values, "6.6.6.6") {
				t.Errorf("trusting %q, the server got %s", trust, name)
			}
		}
		if h.Get("X_kept") != "1" || h.Get("X_forwarded") != "1" {
			t.Errorf("other fields are lost: %v", h)
		}
	}
}

// The address of such a client holds an IPv4 address, by which it is counted. That makes it no
// proxy.
func TestClientBehindNAT64IsNoProxy(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(echo))
	defer app.Close()
	e := rules.New(headgate.NewMemory(), nil, rules.Options{})
	client, err := rules.ClientAddress([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(e, app.URL, Options{
		Client: client, Trusted: nobody, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := request(t.Context(), t, "http://h/", forged...)
	r.RemoteAddr = "[64:ff9b::192.0.2.1]:80"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := w.Body.String(); strings.Contains(got, "203.0.113.9") || strings.Contains(got, "/free") {
		t.Errorf("the server got %s", got)
	}
}

func TestTrustedProxy(t *testing.T) {
	e := serve(t, echo, "127.0.0.0/8",
		rules.Rule{Name: "ip", Key: []rules.KeyPart{{Source: "ip"}}, Limits: per(9)})
	h := echoed(t, get(t, e.url+"/", forged...))
	for name, want := range map[string]string{
		"X-Forwarded-For": "203.0.113.9, 127.0.0.1", "X-Forwarded-Proto": "https",
		"X-Forwarded-Host": "other", "X-Forwarded-Prefix": "/x", "Forwarded": "for=203.0.113.9",
		"X-Original-Url": "", "X_rewrite_url": "", // by which the server would choose another path
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	if got := e.left(t, "ip", "ip:203.0.113.9"); got != 8 {
		t.Errorf("%d remain of the client", got)
	}
}

// A sender is trusted by its address, whatever it says of the client.
func TestTrustedProxyThatNamesNoOther(t *testing.T) {
	e := serve(t, echo, "127.0.0.0/8")
	for _, forwarded := range []string{"", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-For: junk"} {
		fields := []string{"X-Forwarded-Proto: https", "X-Forwarded-Port: 443", "X-Real-IP: 192.0.2.1"}
		if forwarded != "" {
			fields = append(fields, forwarded)
		}
		h := echoed(t, get(t, e.url, fields...))
		for name, want := range map[string]string{
			"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443", "X-Real-Ip": "192.0.2.1",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%q: %s is %q; want %q", forwarded, name, got, want)
			}
		}
	}
}

func TestCostOfResponse(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trailer" {
			w.Header().Set("Trailer", "X-Tokens")
			_, _ = io.WriteString(w, "stream")
			w.Header().Set("X-Tokens", "20")
			return
		}
		w.Header().Set("X-Tokens", strings.TrimPrefix(r.URL.Path, "/"))
	}, "", rules.Rule{Name: "tokens", Limits: per(100), Cost: rules.Cost{ResponseHeader: "X-Tokens"}})
	for _, c := range []struct {
		path   string
		remain int64
	}{{"/10", 90}, {"/none", 89}, {"/0", 89}, {"/trailer", 69}, {"/500", -431}} {
		r := get(t, e.url+c.path)
		if got := r.text; r.StatusCode != http.StatusOK || c.path == "/trailer" && got != "stream" {
			t.Errorf("%s: %d %s", c.path, r.StatusCode, got)
		}
		want := max(c.remain, 0)
		until(t, c.path, func() bool { return e.left(t, "tokens", "all") == want })
	}
	r := get(t, e.url+"/1")
	v, err := e.engine.Match(&rules.Request{Path: "/"}).Decide(t.Context())
	if err != nil || r.StatusCode != http.StatusTooManyRequests || v.RetryAfter < 4*time.Hour {
		t.Errorf("after 531 of 100 an hour: %d, %+v, %v", r.StatusCode, v, err)
	}
}

func TestClientLeaves(t *testing.T) {
	left := make(chan struct{})
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}, "", rules.Rule{Name: "one", Permits: 1})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.DefaultTransport.RoundTrip(request(ctx, t, e.url))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	cancel()
	<-left // the server knows
	until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
}

func TestServerDown(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := "http://" + l.Addr().String()
	_ = l.Close()
	e := serveTarget(t, target, "", rules.Rule{Name: "one", Limits: per(9), Permits: 1})
	for range 2 {
		r := get(t, e.url)
		if got := r.text; r.StatusCode != http.StatusBadGateway || r.Header.Get("Ratelimit") == "" ||
			!strings.Contains(got, "The server behind this proxy does not answer.") {
			t.Errorf("%d %s %v", r.StatusCode, got, r.Header)
		}
	}
	if e.permits.Keys() != 0 {
		t.Error("a permit is held")
	}
}

func TestStoreFails(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the server was reached")
	}))
	defer app.Close()
	e := rules.New(failing{}, nil, rules.Options{})
	set, err := rules.NewSet([]rules.Rule{{Name: "r", Limits: per(1)}})
	if err != nil {
		t.Fatal(err)
	}
	e.Use(set)
	h, err := New(e, app.URL, Options{
		Client:  func(*http.Request) netip.Addr { return netip.Addr{} },
		Trusted: nobody, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for ctx, want := range map[context.Context]int{t.Context(): 503, left: 499} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if w.Code != want {
			t.Errorf("%v: %d; want %d", ctx.Err(), w.Code, want)
		}
	}
}

// The client leaves while the server works: that is no bad gateway.
func TestClientLeavesBeforeTheAnswer(t *testing.T) {
	asked := make(chan struct{})
	e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, "", rules.Rule{Name: "one", Limits: per(9)})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-asked
		leave()
	}()
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code != 499 {
		t.Errorf("%d; want 499", w.Code)
	}
}

// nobody is a trusted proxy.
func nobody(*http.Request) bool { return false }

type failing struct{ headgate.Store }

func (failing) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errors.New("down")
}

func TestNewRefuses(t *testing.T) {
	e := rules.New(headgate.NewMemory(), nil, rules.Options{})
	o := Options{Client: func(*http.Request) netip.Addr { return netip.Addr{} }}
	for _, bad := range []string{
		"", "app:3000", "ftp://app", "http://", "http://user:p@app", "http://app?x", "http://a b",
		"//app",
	} {
		_, err := New(e, bad, o)
		if err == nil || !strings.Contains(err.Error(), "want http://HOST:PORT") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What is no path for the rules does not reach the server, which may read a path in it.
func TestTargetsWithoutAPath(t *testing.T) {
	var reached []string
	e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		reached = append(reached, r.RequestURI)
	}, "", rules.Rule{Name: "login", Match: rules.Match{Path: "/login"}, Limits: per(1)})
	get(t, e.url+"/login")
	for target, want := range map[string]int{
		"http:login": 400, "x:login": 400, "http:%6cogin?a=b": 400, "x:?login": 400, "*": 400,
		"login": 400, "": 400,
		"/login": 429, "http://h/login": 429, "http:/login": 429, "HTTP://h//login": 429,
		"http:///login": 429, "//login": 429, "/login?a": 429,
	} {
		r := send(t, e, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		own := r.Header.Get("Content-Type") == "application/problem+json"
		if r.StatusCode != want || !own && strings.Contains(target, ":") {
			t.Errorf("GET %s: %d, by the proxy: %t; want %d by the proxy", target, r.StatusCode, own, want)
		}
	}
	for method, want := range map[string]int{"CONNECT h:80": 501, "CONNECT /login": 501, "OPTIONS *": 200} {
		if got := send(t, e, method+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").StatusCode; got != want {
			t.Errorf("%s: %d; want %d", method, got, want)
		}
	}
	if !slices.Equal(reached, []string{"/login"}) {
		t.Errorf("the server got %q", reached)
	}
}

// A target that has a host and no path means the path "/".
func TestHostWithoutAPath(t *testing.T) {
	var reached []string
	e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		reached = append(reached, r.RequestURI)
	}, "", rules.Rule{Name: "home", Match: rules.Match{Path: "/"}, Limits: per(2)})
	for target, want := range map[string]int{"http://h": 200, "http://h?/login": 200} {
		r := send(t, e, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		if r.StatusCode != want {
			t.Errorf("GET %s: %d; want %d", target, r.StatusCode, want)
		}
	}
	r := send(t, e, "GET http://h HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("GET http://h, after the limit: %d; want 429", r.StatusCode)
	}
	slices.Sort(reached)
	if !slices.Equal(reached, []string{"/", "/?/login"}) {
		t.Errorf("the server got %q", reached)
	}
}

// send sends the bytes of a request, and returns the answer without its body.
func send(t *testing.T, e *edge, text string) sent {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	_ = r.Body.Close()
	return sent{r.StatusCode, r.Header}
}

// sent is the response to what was sent, without its body.
type sent struct {
	StatusCode int
	Header     http.Header
}

// Requests in a tunnel are not limited, so only websockets make one.
func TestOnlyWebsocketsUpgrade(t *testing.T) {
	app := func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Upgrade")
		if r.Header.Get("HTTP2-Settings") != "" {
			t.Errorf("the server got HTTP2-Settings, and Upgrade: %q", got)
		}
		if got == "" {
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
			got + "\r\n\r\n")
		_ = both.Flush()
	}
	e := serve(t, app, "")
	for fields, want := range map[string]int{
		"Upgrade: websocket\r\n":                                   101,
		"Upgrade: WebSocket \r\nHTTP2-Settings: AAMAAABk\r\n":      101,
		"Upgrade: websocket\r\nUpgrade: h2c\r\n":                   200,
		"Upgrade: h2c\r\nUpgrade: websocket\r\n":                   200,
		"Upgrade: websocket, h2c\r\n":                              200,
		"Upgrade: h2c\r\n":                                         200,
		"Upgrade: H2C\r\nHTTP2-Settings: AAMAAABk\r\n":             200,
		"Upgrade: \xff\r\n":                                        200,
		"Trailer: \xff\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n": 200,
		"Upgrade: TLS/1.0\r\n":                                     200,
		"Upgrade: websocket/13\r\n":                                200,
		"Upgrade: web socket\r\n":                                  200,
		"Upgrade: \r\n":                                            200,
		"HTTP2-Settings: AAMAAABk\r\n":                             200,
		"Upgrade: h2c\r\nConnection: HTTP2-Settings, upgrade\r\n":  200,
	} {
		if got := send(t, e, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"+fields+"\r\n").StatusCode; got != want {
			t.Errorf("%q: %d; want %d", fields, got, want)
		}
	}
}
