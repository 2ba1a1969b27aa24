//go:build gateways

package gateways

import (
	"net/http"
	"strings"
	"testing"
)

// cut returns text with what is from one line to before another replaced.
func cut(t *testing.T, text, from, to, by string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, from)
	_, after, also := strings.Cut(rest, to)
	if !found || !also {
		t.Fatalf("%q or %q is not in:\n%s", from, to, text)
	}
	return before + by + to + after
}

const (
	authzFilter  = "          - name: envoy.filters.http.ext_authz\n"
	routerFilter = "          - name: envoy.filters.http.router\n"
)

// openHTTP starts the page's Envoy with its filters for HTTP, of which the pairs are edited. The
// fields of the app about limits are removed, as the page says.
func openHTTP(t *testing.T, pairs ...string) *site {
	t.Helper()
	g, found := gateways["Envoy"], files(t, "envoy.md")
	g.grpc = false
	config := cut(t, found["envoy.yaml"], authzFilter, routerFilter, found["http-service"])
	config = cut(t, config, "    typed_extension_protocol_options:", "    load_assignment:\n      cluster_name: headgate", "")
	config = edit(t, config, "                route: {cluster: app}\n", "                route: {cluster: app}\n"+
		"                response_headers_to_remove: [ratelimit, ratelimit-policy]\n")
	for i := 0; i < len(pairs); i += 2 {
		config = edit(t, config, pairs[i], pairs[i+1])
	}
	found["envoy.yaml"] = config
	found["headgate.yaml"] = "trust: [127.0.0.1/32]\n" + found["headgate.yaml"] +
		"  - {name: key, match: {path: /key}, key: \"header:X-Api-Key\", limits: 1/h}\n"
	return g.openWith(t, found)
}

// Over HTTP, both forms of the path limit as over gRPC.
func TestEnvoyOverHTTP(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{
		"override": nil,
		"prefix":   {"path_override: /auth ", `path_prefix: "/auth?" `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openHTTP(t, pairs...)
			for _, path := range []string{"/login", "/x/../%6cogin?a=/free"} {
				a := s.send(t, "POST", path, strings.NewReader("user=x"), forged...)
				if got := s.app.since(); a.StatusCode != http.StatusOK || len(got) != 1 ||
					!strings.Contains(a.Header.Get("Ratelimit"), `"login";r=`) {
					t.Errorf("%s: %s %v; the app got %q", path, a.Status, a.Header, got)
				}
			}
			for _, path := range []string{
				"/login", "//login", "/login;a", "/login/?/free", "/x/../login", "/%6cogin", "/login?rule=address",
			} {
				denied(t, s, path, s.send(t, "POST", path, nil, forged...), "login")
			}
			for _, path := range []string{"/address", "/auth/address", "/nginx"} {
				a := s.send(t, "GET", path, nil, forged...)
				passed(t, s, path, a, "GET "+path+" ")
				if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, `"address";r=`) {
					t.Errorf("%s: RateLimit is %s", path, got)
				}
			}
			denied(t, s, "the sixth", s.send(t, "GET", "/", nil, forged...), "address")
		})
	}
}

// A second value of a key's field makes no new key.
func TestEnvoyOverHTTPTakesTheFirstValue(t *testing.T) {
	t.Parallel()
	s := openHTTP(t)
	for _, c := range []struct {
		fields []string
		want   int
	}{
		{[]string{"X-Api-Key: A", "X-Api-Key: 1"}, http.StatusOK},
		{[]string{"X-Api-Key: A", "X-Api-Key: 2"}, http.StatusTooManyRequests},
		{[]string{"X-Api-Key: A"}, http.StatusTooManyRequests},
		{[]string{"X-Api-Key: ", "X-Api-Key: A", "X-Api-Key: 1"}, http.StatusOK},
		{[]string{"X-Api-Key: ", "X-Api-Key: A", "X-Api-Key: 2"}, http.StatusTooManyRequests},
	} {
		a := s.send(t, "GET", "/key", nil, c.fields...)
		if got := s.app.since(); a.StatusCode != c.want {
			t.Errorf("%q: %s %s; want %d; the app got %q", c.fields, a.Status, a.body, c.want, got)
		}
	}
}

// A configuration that hides the client's URI denies all requests, and passes none.
func TestEnvoyHidesTheURI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []string
		want  map[string]int
	}{
		"not set": {
			[]string{"key: x-forwarded-uri", "key: x-other"},
			map[string]int{"/": 400, "/login": 400, "/auth/login": 400},
		},
		"not sent": {
			[]string{"{prefix: x-forwarded-}, ", ""},
			map[string]int{"/": 400, "/login": 400},
		},
		"appended": { // and the client chooses the rule, with its limit
			[]string{"path_override: /auth ", "path_prefix: /auth ", "key: x-forwarded-uri", "key: x-other"},
			map[string]int{"/": 400, "/free": 404, "/login/x": 404, "/nginx": 400},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openHTTP(t, c.pairs...)
			for path, want := range c.want {
				a := s.send(t, "GET", path, nil)
				if got := s.app.since(); a.StatusCode != want || len(got) > 0 {
					t.Errorf("%s: %s %s; want %d; the app got %q", path, a.Status, a.body, want, got)
				}
				if want == http.StatusBadRequest && !strings.Contains(a.body, "no X-Forwarded-Uri and no X-Original-URI") {
					t.Errorf("%s: %s", path, a.body)
				}
			}
		})
	}
}
