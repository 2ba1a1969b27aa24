package forwardauth

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/problem"
)

func newHandler(t *testing.T, store headgate.Store, list ...rules.Rule) http.Handler {
	t.Helper()
	return New(engine(t, store, list...), address(t), func(http.Header, *http.Request) {}, func(*http.Request) {})
}

// ask sends a request with header fields, given as "Name: value".
func ask(h http.Handler, method, address string, fields ...string) reply {
	r := httptest.NewRequestWithContext(context.Background(), method, address, nil)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

// reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   string
}

func login(n int64) rules.Rule {
	return rules.Rule{
		Name:   "login",
		Match:  rules.Match{Methods: []string{"POST"}, Hosts: []string{"app"}, Path: "/login"},
		Key:    []rules.KeyPart{{Source: "ip"}},
		Limits: []headgate.Limit{headgate.PerHour(n)},
	}
}

// remaining is what is left, by the header fields; "none" without fields.
func remaining(r reply) string {
	if v := r.header.Get("X-Ratelimit-Remaining"); v != "" {
		return v
	}
	return "none"
}

func TestInputs(t *testing.T) {
	for name, c := range map[string]struct {
		method, address string
		fields          []string
		applies         bool
	}{
		"forwarded": {"GET", "http://h/auth", []string{"X-Forwarded-Method: POST",
			"X-Forwarded-Uri: /login?next=/", "X-Forwarded-Host: app"}, true},
		"original": {"GET", "http://app/auth", []string{"X-Original-Method: POST",
			"X-Original-URI: /x/../%6cogin"}, true},
		"forwarded wins": {"GET", "http://app/auth", []string{"X-Forwarded-Method: POST",
			"X-Forwarded-Uri: /login", "X-Original-Method: GET", "X-Original-URI: /free"}, true},
		"the nearest proxy wins": {"POST", "http://h/auth", []string{"X-Forwarded-Uri: /free",
			"X-Forwarded-Uri: /login", "X-Forwarded-Host: free, app"}, true},
		"another path":    {"POST", "http://app/auth", []string{"X-Forwarded-Uri: /free"}, false},
		"another method":  {"GET", "http://app/auth", []string{"X-Forwarded-Uri: /login"}, false},
		"one rule":        {"GET", "http://h/auth/login", nil, true},
		"one, slash":      {"GET", "http://h/auth/login/", nil, true},
		"nginx, one rule": {"GET", "http://h/auth/nginx/login", nil, true},
		"nginx":           {"POST", "http://app/auth/nginx", []string{"X-Forwarded-Uri: /login"}, true},
		"preflight": {"GET", "http://h/auth/login", []string{"X-Forwarded-Method: OPTIONS",
			"Origin: https://a", "Access-Control-Request-Method: POST"}, false},
		"query of no rule": {"POST", "http://app/auth?rule=login&uri=/login",
			[]string{"X-Forwarded-Uri: /free"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, headgate.NewMemory(), login(5))
			r := ask(h, c.method, c.address, c.fields...)
			want := "none"
			if c.applies {
				want = "4"
			}
			if r.status != http.StatusOK || remaining(r) != want ||
				r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d, %s remain, want %s: %v", r.status, remaining(r), want, r.header)
			}
		})
	}
}

func TestDenial(t *testing.T) {
	for address, status := range map[string]int{
		"http://app/auth": 429, "http://h/auth/login": 429,
		"http://app/auth/nginx": 403, "http://h/auth/nginx/login": 403,
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "PROPFIND"} {
			h := newHandler(t, headgate.NewMemory(), login(1))
			fields := []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login"}
			ask(h, method, address, fields...)
			// Neither the query nor other fields buy another budget.
			r := ask(h, method, address+"?cost=0&limit=100/s&rule=x", append(fields, "Cost: 0",
				"RateLimit: login;r=9", "X-Original-URI: /free", "X-Forwarded-For: 203.0.113.1, 192.0.2.9")...)
			if r.status != http.StatusOK { // a client of a trusted proxy, and another key
				t.Errorf("%s %s from another client: %d", method, address, r.status)
			}
			r = ask(h, method, address+"?cost=0&limit=100/s&rule=x", append(fields, "Cost: 0")...)
			h2 := r.header
			seconds, err := strconv.Atoi(h2.Get("Retry-After"))
			if r.status != status || err != nil || seconds < 3590 ||
				!strings.HasPrefix(h2.Get("Ratelimit"), `"login";r=0;t=`) ||
				h2.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: %d %v", method, address, r.status, h2)
			}
			if status == http.StatusForbidden { // without a body, for nginx to keep its connection
				if r.body != "" {
					t.Errorf("%s %s: %q", method, address, r.body)
				}
				continue
			}
			var p problem.Problem
			if err := json.Unmarshal([]byte(r.body), &p); err != nil || p.Status != status ||
				len(p.Violated) != 1 || p.Violated[0] != "login" ||
				!strings.HasPrefix(p.Detail, "The rule login is exceeded. Retry in ") ||
				h2.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %+v, %v", method, address, p, err)
			}
		}
	}
}

// Without the URI of the client, the rules are not known: no request passes, unless the address
// names its rule.
func TestMissingURI(t *testing.T) {
	h := newHandler(t, headgate.NewMemory(), login(1))
	for _, c := range []struct {
		address string
		fields  []string
		want    int
	}{
		{"/auth", nil, 400},
		{"/auth/", nil, 400},
		{"/auth?/login", nil, 400},
		{"/auth/nginx", nil, 400},
		{"/auth", []string{"X-Forwarded-Uri: ", "X-Original-URI: "}, 400},
		{"/auth", []string{"X-Original-URL: /login", "X-Forwarded-Method: POST"}, 400},
		{"/auth", []string{"X-Forwarded-Uri: /free"}, 200},
		{"/auth/nginx", []string{"X-Original-URI: /free"}, 200},
		{"/auth/login", nil, 200},
		{"/auth/nginx/login", nil, 403}, // the same limit
	} {
		r := ask(h, "POST", c.address, c.fields...)
		var p problem.Problem
		if c.want == http.StatusBadRequest {
			if err := json.Unmarshal([]byte(r.body), &p); err != nil ||
				!strings.Contains(p.Detail, "Set one of these fields to the URI that the client asked for") {
				t.Errorf("%s: %s, %v", c.address, r.body, err)
			}
		}
		if r.status != c.want || p.Status != r.status && c.want == http.StatusBadRequest {
			t.Errorf("%s %v: %d; want %d", c.address, c.fields, r.status, c.want)
		}
	}
}

func TestNotFound(t *testing.T) {
	h := newHandler(t, headgate.NewMemory(), login(1))
	for address, want := range map[string]string{
		"/auth/none":          "There is no rule none.",
		"/auth/nginx/none":    "There is no rule none.",
		"/auth/login/x":       "The path does not exist; want /auth",
		"/auth/nginx/login/x": "The path does not exist; want /auth",
		"/authority":          "The path does not exist; want /auth",
	} {
		r := ask(h, "GET", address)
		if r.status != http.StatusNotFound || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", address, r.status, r.body)
		}
	}
}

// failing is a store that is unavailable.
type failing struct{ headgate.Store }

func (failing) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errors.New("down")
}

// If no limit is checked, the client is not to blame: neither by a failing store, nor by a fallback
// that denies.
func TestStoreFails(t *testing.T) {
	closed, err := fallback.New(failing{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []headgate.Store{failing{}, closed} {
		for _, address := range []string{"/auth/login", "/auth/nginx/login"} {
			r := ask(newHandler(t, store, login(1)), "GET", address)
			if r.status != http.StatusServiceUnavailable || remaining(r) != "none" {
				t.Errorf("%s: %d %v", address, r.status, r.header)
			}
		}
	}
}

// A client that has left is not told that the server fails: 499 is for logs.
func TestClientHasLeft(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	h := newHandler(t, failing{}, login(1))
	for ctx, want := range map[context.Context]int{ctx: 499, late: http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/auth/login", nil))
		if w.Code != want {
			t.Errorf("%v: %d; want %d", ctx.Err(), w.Code, want)
		}
	}
}

// A proxy may announce a body that never comes. The answer comes at once; a body that was sent
// leaves the connection usable.
func TestBodyIsNotWaitedFor(t *testing.T) {
	server := httptest.NewServer(newHandler(t, headgate.NewMemory(), login(100)))
	defer server.Close()
	for name, c := range map[string]struct {
		request string
		closed  bool
	}{
		"announced":       {"Content-Length: 100000\r\n\r\n", true},
		"announced small": {"Content-Length: 10\r\n\r\n12345", true},
		"chunked":         {"Transfer-Encoding: chunked\r\n\r\n", true},
		"continue":        {"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n", true},
		"sent":            {"Content-Length: 10\r\n\r\n1234567890", false},
		"none":            {"\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			address := server.Listener.Addr().String()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, "POST /auth/login HTTP/1.1\r\nHost: h\r\n"+c.request)
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK || r.Close != c.closed {
				t.Errorf("%d, closed %t, want 200 and %t", r.StatusCode, r.Close, c.closed)
			}
		})
	}
}

// The body of the request and the response are not seen: a rule of tokens takes its estimate, but no
// more than its limit can hold.
func TestTokenCost(t *testing.T) {
	rule := func(name string, n int64) rules.Rule {
		return rules.Rule{Name: name, Limits: []headgate.Limit{headgate.PerHour(n)},
			Cost: rules.Cost{Tokens: &rules.TokenCost{Estimate: 300, Input: 1}}}
	}
	h := newHandler(t, headgate.NewMemory(), rule("model", 500))
	if r := ask(h, "POST", "http://app/auth/model"); r.status != http.StatusOK || remaining(r) != "200" {
		t.Errorf("%+v", r)
	}
	h = newHandler(t, headgate.NewMemory(), rule("model", 100))
	if r := ask(h, "POST", "http://app/auth/model"); r.status != http.StatusOK || remaining(r) != "0" {
		t.Errorf("%+v", r)
	}
}
