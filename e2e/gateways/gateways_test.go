//go:build gateways

package gateways

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
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
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
		if v := a.Header[name]; len(v) > 1 {
			t.Errorf("%s: %s is %q; want one", what, name, v)
		}
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
		if n := s.relay.count(); n > 2 && !g.connect { // of 15 requests
			t.Errorf("the gateway made %d connections to headgate, want 1 or 2", n)
		}
	})
}

// Of a field that a client sends twice, the first value is the key, so a second one is no new key.
func TestFieldsSentTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		g.rules = `
  - {name: key, match: {path: /key}, key: "header:X-Api-Key", limits: 1/h}
  - {name: cookie, match: {path: /cookie}, key: "cookie:id", limits: 1/h}
`
		s := g.open(t, false)
		for _, c := range []struct {
			rule    string // which denies; "": none
			path    string
			headers []string
		}{
			{"", "/key", []string{"X-Api-Key: k"}},
			{"key", "/key", []string{"X-Api-Key: k", "X-Api-Key: 1"}},
			{"key", "/key", []string{"X-Api-Key: k", "X-Api-Key: 2", "X-Api-Key: 3"}},
			{"", "/key", []string{"X-Api-Key: 1", "X-Api-Key: k"}},
			{"", "/cookie", []string{"Cookie: a=x,y; id=k"}},
			{"cookie", "/cookie", []string{"Cookie: id=k", "Cookie: 1"}},
			{"cookie", "/cookie", []string{"Cookie: a=1; id=k", "Cookie: 2"}},
		} {
			a, what := s.send(t, "GET", c.path, nil, c.headers...), fmt.Sprint(c.headers)
			if c.rule == "" {
				passed(t, s, what, a, "GET "+c.path+" ")
			} else {
				denied(t, s, what, a, c.rule)
			}
		}
	})
}

// Over HTTP/2, the limits are the same, but nginx's Lua cannot ask, as the page says.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		found := files(t, g.page)
		found[g.config] = edit(t, found[g.config], g.http2[0], g.http2[1])
		s := g.openWith(t, found)
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		s.client.Transport = &http.Transport{Protocols: protocols}
		if g.config == "lua.conf" {
			a := s.send(t, "GET", "/", nil)
			if got := s.app.since(); a.StatusCode != http.StatusInternalServerError || len(got) > 0 {
				t.Errorf("%s; the app got %q", a.Status, got)
			}
			return
		}
		for range 2 {
			a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
			passed(t, s, a.Proto, a, "POST /login user=x")
		}
		a := s.send(t, "POST", "/login", strings.NewReader("user=x"))
		denied(t, s, a.Proto, a, "login")
	})
}

// The plan of an API key chooses the rule. Keys that are not in the map share the limit of the
// address.
func TestNginxPlans(t *testing.T) {
	t.Parallel()
	found := files(t, "nginx.md")
	found["headgate.yaml"] = found["plans.yaml"]
	config := edit(t, found["nginx.conf"], "http {\n", "http {\n"+found["plans.conf"])
	found["nginx.conf"] = edit(t, config, "/auth/nginx;", "/auth/nginx/$plan;")
	s := gateways["nginx"].openWith(t, found)
	for i, key := range []string{"", "k-0", "K-4F7A19C2", "k-4f7a19c2x", "x, k-4f7a19c2"} {
		a := s.send(t, "GET", "/", nil, "X-Api-Key: "+key)
		passed(t, s, key, a, "GET / ")
		if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, fmt.Sprintf(`"free";r=%d;`, 4-i)) {
			t.Errorf("%s: RateLimit is %s", key, got)
		}
	}
	denied(t, s, "over the plan", s.send(t, "GET", "/", nil, "X-Api-Key: k-1"), "free")
	for _, left := range []string{"99", "98"} {
		a := s.send(t, "GET", "/", nil, append(forged, "X-Api-Key: k-4f7a19c2")...)
		passed(t, s, "a plan", a, "GET / ")
		if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, `"pro";r=`+left+";") {
			t.Errorf("RateLimit is %s", got)
		}
	}
	if n := s.relay.count(); n > 2 {
		t.Errorf("nginx made %d connections to headgate, want 1 or 2", n)
	}
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
			why := []string{"Headgate: connection refused", "Headgate: timeout"}[i]
			until(t, "the log has "+why, func() bool {
				return !g.logs || strings.Contains(s.wrote.String(), why)
			})
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
		if got := s.app.since(); a.StatusCode < http.StatusBadGateway || len(got) != 1 {
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
		// 503, which nginx makes a 500.
		if a.StatusCode < http.StatusInternalServerError || a.Header.Get("Ratelimit") != "" {
			t.Errorf("%s %v %s", a.Status, a.Header, a.body)
		}
		if got := s.app.since(); len(got) > 0 {
			t.Errorf("the app got %q", got)
		}
	})
}

// Without a gateway, headgate itself passes requests on.
func TestProxy(t *testing.T) {
	t.Parallel()
	rules := edit(t, files(t, "caddy.md")["headgate.yaml"], "/m", "/h")
	s, server := openProxy(t, edit(t, rules, "127.0.0.1/32", "192.0.2.1/32"))
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

// The commands of a page, one after the other, lead to a denied request.
func TestNewUser(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"nginx.md", "caddy.md", "haproxy.md", "apache.md", "envoy.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			followPage(t, page)
		})
	}
}

// seconds are what a reader waits, which a busy machine can exceed.
var seconds = regexp.MustCompile(`(?m)^sleep \d+$`)

// answering is the command of bash that waits until addresses can be connected to.
func answering(addresses ...string) (command string) {
	for _, address := range addresses {
		file := strings.Replace(address, ":", "/", 1)
		command += "until (</dev/tcp/" + file + ") 2>/dev/null; do sleep 0.1; done\n"
	}
	return command
}

// followPage writes the files of a page and runs its commands, at other addresses.
func followPage(t *testing.T, page string) {
	t.Helper()
	dir := directory(t)
	asked, grpc, service, web := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	_, port, err := net.SplitHostPort(service)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("--bind 127.0.0.1 3000", "--bind 127.0.0.1 "+port,
		"/tmp/try-headgate", dir, "\nenvoy ", "\n"+envoy()+" ",
		"headgate serve", "headgate serve --debug off --grpc "+grpc+" --http "+asked)
	there := func(text string) string {
		for port, address := range map[string]string{"8000": web, "8080": asked, "8081": grpc, "3000": service} {
			text = moved(text, port, address)
		}
		return here.Replace(text)
	}
	written := files(t, page)
	for name, text := range written {
		written[name] = there(text)
	}
	delete(written, "fail-open")                                             // another way, which is not of the steps
	written["headgate.yaml"] = edit(t, written["headgate.yaml"], "/m", "/h") // for slow machines
	write(t, dir, written)
	script := there(strings.Join(commands(t, page), ""))
	script = seconds.ReplaceAllString(script, answering(asked, grpc, service, web))
	script = "set -e\ntrap 'kill $(jobs -p); wait' EXIT\n" + script
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Cancel = func() error { return bash.Process.Signal(syscall.SIGTERM) } // it ends what it started
	bash.WaitDelay = 10 * time.Second
	bash.Dir, _ = filepath.Abs(root)
	out, err := bash.CombinedOutput()
	text := strings.ToLower(string(out))
	allowed := strings.Count(text, "http/1.1 200 ok\r\n") + strings.Count(text, "http/1.0 200 ok\r\n")
	if err != nil || allowed != 5 || strings.Count(text, "\nratelimit: ") != 6 ||
		strings.Count(text, "http/1.1 429 too many requests\r\n") != 1 ||
		strings.Count(text, "\nretry-after: ") != 1 {
		t.Errorf("%v\n%s\nby\n%s", err, out, script)
	}
}
