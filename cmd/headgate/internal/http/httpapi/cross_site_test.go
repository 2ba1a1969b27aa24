package httpapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var (
	onLoopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	everywhere = &net.TCPAddr{IP: net.IPv6zero}
)

// ask serves a request for this machine, with the given header fields, each as "Name: value", or
// in HTTP/1.0.
func ask(t *testing.T, h http.Handler, method, path, body string, fields ...string) response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8080"+path,
		strings.NewReader(body))
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "HTTP/1.0":
			r.Proto, r.ProtoMinor = name, 0
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return response{w.Result(), strings.TrimSuffix(w.Body.String(), "\n")}
}

// operations has a request for every path of /v1/.
var operations = []struct {
	method, path, body string
	by                 caller
}{
	{"POST", "/v1/take", `{"rule":"tokens","key":"k"}`, program},
	{"POST", "/v1/take", `{"rule":"tokens","key":"k","force":true}`, program},
	{"POST", "/v1/take-all", `{"requests":[{"rule":"tokens","key":"k"}]}`, program},
	{"POST", "/v1/peek", `{"rule":"tokens","key":"k"}`, program},
	{"POST", "/v1/reserve", `{"rule":"tokens","key":"k"}`, program},
	{"POST", "/v1/acquire", `{"rule":"exports","key":"k"}`, program},
	{"POST", "/v1/refund", `{"rule":"tokens","key":"k"}`, operator},
	{"DELETE", "/v1/keys/tokens/k", "", operator},
	{"PUT", "/v1/overrides", `{"rule":"tokens","key":"k","ban":true}`, operator},
	{"GET", "/v1/overrides", "", operator},
	{"DELETE", "/v1/overrides/tokens/k", "", operator},
}

// Without tokens, everybody who can connect may ask for decisions, and only this machine may do what
// an operator does. With tokens, everything needs one.
func TestWhoMayDoWhat(t *testing.T) {
	const secret = "0123456789abcdef"
	for _, c := range []struct {
		name              string
		on                net.Addr
		tokens            bool
		field             string
		program, operator int
	}{
		{"this machine", onLoopback, false, "X-A: b", 200, 200},
		{"this machine by IPv6", onLoopback, false, "Host: [::1]:8080", 200, 200},
		{"a Unix socket", &net.UnixAddr{Net: "unix"}, false, "Host: localhost", 200, 200},
		{"another machine", everywhere, false, "X-A: b", 200, 403},
		{"another machine, an unknown token", everywhere, false, "Authorization: Bearer " + secret, 200, 403},
		{"a name that points here", onLoopback, false, "Host: evil.example", 200, 403},
		{"a proxy here", onLoopback, false, "X-Forwarded-For: 192.0.2.1", 200, 403},
		{"Via", onLoopback, false, "Via: 1.1 a", 200, 403},
		{"Forwarded", onLoopback, false, "Forwarded: for=192.0.2.1", 200, 403},
		{"X-Real-IP", onLoopback, false, "X-Real-IP: 192.0.2.1", 200, 403},
		{"Envoy here", onLoopback, false, "X-Envoy-Expected-Rq-Timeout-Ms: 15000", 200, 403},
		{"Envoy here, the scheme", onLoopback, false, "X-Forwarded-Proto: https", 200, 403},
		{"Envoy here, an id", onLoopback, false, "X-Request-Id: 1", 200, 403},
		{"HTTP/1.0, as nginx sends it", onLoopback, false, "HTTP/1.0", 200, 403},
		{"here, tokens, none", onLoopback, true, "X-A: b", 401, 401},
		{"here, tokens, a wrong one", onLoopback, true, "Authorization: Bearer x", 401, 401},
		{"here, tokens, one", onLoopback, true, "Authorization: Bearer " + secret, 200, 200},
		{"elsewhere, tokens, none", everywhere, true, "X-A: b", 401, 401},
		{"elsewhere, tokens, one", everywhere, true, "Authorization: Bearer " + secret, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Settings
			if c.tokens {
				s.Tokens = []string{"another", secret}
			}
			f := build(t, nil, s)
			f.handler.Listen(c.on)
			for _, o := range operations {
				want := c.program
				if o.by == operator {
					want = c.operator
				}
				got := ask(t, f.handler, o.method, o.path, o.body, c.field)
				if got.StatusCode != want && (want != 200 || got.StatusCode != http.StatusNoContent) {
					t.Errorf("%s %s: %d %s, want %d", o.method, o.path, got.StatusCode, got.text, want)
				}
				if want == 403 {
					got.want(t, 403, "a listener on loopback", "set api.tokens in the rules file")
				}
			}
		})
	}
}

// A listener that was not named is public.
func TestUnknownListenerIsPublic(t *testing.T) {
	h := New(build(t, nil, Settings{}).handler.options, Settings{})
	if got := ask(t, h, "GET", "/v1/overrides", ""); got.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
}

// A page of another site gets nothing from a listener that has no tokens.
func TestOnlyOwnPages(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("1")) })
	for _, c := range []struct {
		on    net.Addr
		field string
		want  int
	}{
		{onLoopback, "X-A: b", 200},
		{onLoopback, "Host: localhost:6070", 200},
		{onLoopback, "Sec-Fetch-Site: none", 200},
		{onLoopback, "Host: evil.example:6070", 403},
		{onLoopback, "Sec-Fetch-Site: cross-site", 403},
		{onLoopback, "Sec-Fetch-Site: same-site", 403},
		{everywhere, "Host: ratelimit:6070", 200},
		{everywhere, "Sec-Fetch-Site: cross-site", 403},
	} {
		if got := ask(t, OnlyOwnPages(c.on, page), "GET", "/", "", c.field); got.StatusCode != c.want {
			t.Errorf("%s, %s: %d %s, want %d", c.on, c.field, got.StatusCode, got.text, c.want)
		}
	}
}
