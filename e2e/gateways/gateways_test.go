package gateways

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// each runs a test with each gateway.
func each(t *testing.T, test func(t *testing.T, g gateway)) {
	t.Helper()
	for name, g := range gateways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// forged are the fields by which a client may try to be somebody else.
var forged = []string{
	"X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9", "Forwarded: for=203.0.113.9",
	"X-Forwarded-Method: GET", "X-Forwarded-Uri: /free", "X-Forwarded-Host: free",
	"X-Original-Method: GET", "X-Original-URI: /free",
	`RateLimit: "login";r=99`, "X-RateLimit-Remaining: 99", "Cost: 0",
}

// denied checks the answer to a request over the limit of rule.
func denied(t *testing.T, s *site, what string, a answer, rule string) {
	t.Helper()
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" ||
		!strings.HasPrefix(a.Header.Get("Ratelimit"), `"`+rule+`";r=0;t=`) ||
		!strings.Contains(a.Header.Get("Ratelimit-Policy"), `"`+rule+`";q=`) ||
		a.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(a.body, `"status":429`) {
		t.Errorf("%s: %s %v %s", what, a.Status, a.Header, a.body)
	}
	if got := s.app.since(); len(got) > 0 {
		t.Errorf("%s: the app got %q", what, got)
	}
}

// passed checks the answer to a request that reached the app as want.
func passed(t *testing.T, s *site, what string, a answer, want string) {
	t.Helper()
	if a.StatusCode != http.StatusOK || a.body != "hello\n" || a.Header.Get("X-App") != "1" {
		t.Errorf("%s: %s %v %s", what, a.Status, a.Header, a.body)
	}
	if got := s.app.since(); !slices.Equal(got, []string{want}) {
		t.Errorf("%s: the app got %q; want %q", what, got, want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		s := g.open(t, false)
		a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
		passed(t, s, "a body", a, "POST /login user=x")
		if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, `"address";r=4;t=`) ||
			!strings.Contains(got, `"login";r=1;t=`) {
			t.Errorf("RateLimit is %s", got)
		}
		// Without a length, and larger than the gateway keeps in memory.
		large := strings.Repeat("0123456789", 10_000)
		a = s.send(t, "POST", "/login", io.MultiReader(strings.NewReader(large)))
		passed(t, s, "a large body", a, "POST /login "+large)
		a = s.send(t, "POST", "/login", strings.NewReader("user=x"))
		denied(t, s, "one too many", a, "login")

		a = s.send(t, "POST", "/login?cost=0&rule=x", nil, forged...)
		denied(t, s, "forged fields", a, "login")
		for _, path := range []string{"//login", "/x/../login", "/%6cogin", "/login/", "/./login;a"} {
			a = s.send(t, "POST", path, nil, forged...)
			denied(t, s, path, a, "login")
		}
		for _, left := range []string{"2", "1", "0"} {
			a = s.send(t, "GET", "/a%20b?cost=0", nil, forged...)
			passed(t, s, left+" are left", a, "GET /a b ")
			if got := a.Header.Values("Ratelimit"); len(got) != 1 ||
				!strings.HasPrefix(got[0], `"address";r=`+left+";") {
				t.Errorf("RateLimit is %q, want %s left", got, left)
			}
		}
		for _, method := range []string{"GET", "DELETE", "PUT"} {
			a = s.send(t, method, "/?cost=0", nil, forged...)
			denied(t, s, method, a, "address")
		}
		if n := s.relay.count(); n > 2 { // of 15 requests
			t.Errorf("the gateway made %d connections to headgate, want 1 or 2", n)
		}
	})
}

func TestServiceDownFailClosed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		s := g.open(t, false)
		for i, m := range []mode{down, hung} {
			s.relay.set(t, m)
			a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
			if got := s.app.since(); a.StatusCode != g.down[i] || len(got) > 0 {
				t.Errorf("mode %d: %s, want %d; the app got %q", m, a.Status, g.down[i], got)
			}
			s.relay.set(t, up)
			until(t, "headgate is asked again", func() bool {
				return s.send(t, "GET", "/", nil).StatusCode == http.StatusOK
			})
			s.app.since()
		}
	})
}

func TestServiceDownFailOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		s := g.open(t, true)
		for _, m := range []mode{down, hung} {
			s.relay.set(t, m)
			a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
			passed(t, s, "while headgate does not answer", a, "POST /login user=x")
			s.relay.set(t, up)
			until(t, "the limit applies again", func() bool {
				return s.send(t, "GET", "/", nil).StatusCode == http.StatusTooManyRequests
			})
			s.app.since()
		}
	})
}

// A request that the app failed is not sent again, because it may have had an effect.
func TestAppFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		s := g.open(t, true)
		s.app.abort = true
		a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
		if got := s.app.since(); a.StatusCode != http.StatusBadGateway || len(got) != 1 {
			t.Errorf("%s, and the app got %q", a.Status, got)
		}
	})
}

// While the store fails, the policy of headgate decides, and not that of the gateway.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		s := g.open(t, true, "--store", "redis://"+freeAddress(t))
		a := s.send(t, "GET", "/", nil)
		if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %v %s", a.Status, a.Header, a.body)
		}
	})
}

// Without a gateway, headgate itself passes requests on.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := &site{app: &app{}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	server := httptest.NewServer(s.app)
	t.Cleanup(server.Close)
	dir, address := directory(t), freeAddress(t)
	rules := edit(t, files(t, "caddy.md")["headgate.yaml"], "/m", "/h")
	write(t, dir, map[string]string{"headgate.yaml": edit(t, rules, "127.0.0.1/32", "192.0.2.1/32")})
	startHeadgate(t, dir, "--proxy", address+"="+server.URL)
	s.url = "http://" + address
	for range 2 {
		a := s.send(t, "POST", "/login", strings.NewReader("user=x"), forged...)
		passed(t, s, "a body", a, "POST /login user=x")
	}
	denied(t, s, "one too many", s.send(t, "POST", "//login?cost=0", nil, forged...), "login")
	server.Close()
	a := s.send(t, "GET", "/", nil)
	if a.StatusCode != http.StatusBadGateway || a.Header.Get("Ratelimit") == "" {
		t.Errorf("%s %v %s", a.Status, a.Header, a.body)
	}
}

// The commands of nginx.md, one after the other, lead to a denied request.
func TestNewUser(t *testing.T) {
	t.Parallel()
	const place, page = "/tmp/try-headgate", "nginx.md"
	dir := directory(t)
	site, service, asked := freeAddress(t), freeAddress(t), freeAddress(t)
	conf := edit(t, files(t, page)["nginx.conf"], "127.0.0.1:8000", site)
	conf = edit(t, edit(t, conf, "127.0.0.1:3000", service), "127.0.0.1:8080", asked)
	write(t, dir, map[string]string{
		"nginx.conf": conf, "headgate.yaml": files(t, page)["headgate.yaml"],
	})
	script := edit(t, strings.Join(commands(t, page), ""), "127.0.0.1:8000", site)
	script = edit(t, script, place, dir)
	script = edit(t, script, "headgate serve", "headgate serve --grpc off --debug off --http "+asked)
	script = "set -e\ntrap 'kill %1 %2; wait' EXIT\n" + script
	bash := exec.CommandContext(t.Context(), "bash", "-c", script)
	bash.Dir, _ = filepath.Abs(root)
	out, err := bash.CombinedOutput()
	text := string(out)
	if err != nil || strings.Count(text, "HTTP/1.1 200 OK\r\nRateLimit: ") != 5 ||
		strings.Count(text, "HTTP/1.1 429 Too Many Requests\r\nRateLimit: ") != 1 ||
		strings.Count(text, "\nRetry-After: ") != 1 {
		t.Errorf("%v\n%s\nby\n%s", err, text, script)
	}
}
