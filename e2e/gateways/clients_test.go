//go:build gateways

package gateways

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// held are rules that hold requests, and others for all that a client sends.
const held = `
trust: [127.0.0.1/32]
rules:
  - {name: all, key: ip, limits: 100/m}
  - {name: held, match: {path: /held}, limits: 1/s burst 1, max_wait: 8s}
`

// What clients send passes as it is: large bodies, websockets, HEAD, preflights, and requests that
// Headgate holds.
func TestClients(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		if g.grpc {
			t.Skip("Headgate holds no requests over gRPC")
		}
		found := files(t, g.page)
		for name, text := range found {
			found[name] = strings.ReplaceAll(text, g.timeout[0], g.timeout[1])
			if g.uploads[0] != "" && name == g.config {
				found[name] = edit(t, found[name], g.uploads[0], g.uploads[1])
			}
		}
		found["headgate.yaml"] = held
		clients(t, g.openWith(t, found))
	})
	t.Run("proxy", func(t *testing.T) {
		t.Parallel()
		s, _ := openProxy(t, strings.ReplaceAll(held, "/m", "/h"))
		clients(t, s)
	})
}

// openProxy starts Headgate as the proxy of an app.
func openProxy(t *testing.T, rules string) (s *site, server *httptest.Server) {
	t.Helper()
	s = &site{app: &app{}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	server = httptest.NewServer(s.app)
	t.Cleanup(server.Close)
	dir, address := directory(t), freeAddress(t)
	write(t, dir, map[string]string{"headgate.yaml": rules})
	startHeadgate(t, dir, "--proxy", address+"="+server.URL)
	s.url = "http://" + address
	return s, server
}

func clients(t *testing.T, s *site) {
	t.Helper()
	large := strings.Repeat("x", 2_000_000)
	a := s.send(t, "PUT", "/", strings.NewReader(large))
	passed(t, s, "2 MB", a, "PUT / 2000000 bytes")
	a = s.send(t, "POST", "/", io.MultiReader(strings.NewReader(large)))
	passed(t, s, "2 MB in chunks", a, "POST / 2000000 bytes")
	a = s.send(t, "HEAD", "/", nil)
	if got := s.app.since(); a.StatusCode != http.StatusOK || !slices.Equal(got, []string{"HEAD / "}) {
		t.Errorf("HEAD: %s, the app got %q", a.Status, got)
	}
	for range 3 {
		a = s.send(t, "OPTIONS", "/", nil, "Origin: https://a", "Access-Control-Request-Method: PUT")
		passed(t, s, "a preflight", a, "OPTIONS / ")
	}
	a = s.send(t, "GET", "/", nil)
	if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, `"all";r=96;`) {
		t.Errorf("after four requests and three preflights: RateLimit is %s", got)
	}
	websocket(t, s)
	s.app.since()
	hold(t, s)
	if got := s.app.since(); len(got) != 4 {
		t.Errorf("held: the app got %q", got)
	}
}

// hold sends four requests at once, of which three have to wait.
func hold(t *testing.T, s *site) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.send(t, "GET", "/held", nil) })
	}
	all.Wait()
}

// While Headgate holds some requests for longer than HAProxy waits, it is asked about the others.
func TestHAProxyPausesOnlyWithoutAConnection(t *testing.T) {
	t.Parallel()
	found := files(t, "haproxy.md")
	found["headgate.yaml"] = held
	s := gateways["HAProxy"].openWith(t, found)
	hold(t, s)
	s.app.since()
	passed(t, s, "another request", s.send(t, "GET", "/", nil), "GET / ")
}

// websocket opens a websocket and talks.
func websocket(t *testing.T, s *site) {
	t.Helper()
	host := strings.TrimPrefix(s.url, "http://")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	lines := bufio.NewReader(conn)
	r, err := http.ReadResponse(lines, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("a websocket: %v, %v", r, err)
		return
	}
	defer r.Body.Close()
	for _, word := range []string{"one\n", "two\n"} {
		_, _ = io.WriteString(conn, word)
		if got, err := lines.ReadString('\n'); got != strings.ToUpper(word) {
			t.Errorf("a websocket: %q, %v", got, err)
		}
	}
}

// uploads sends bodies as many programs do: all of a body before the answer is read.
const uploads = `
import http.client, sys, time
for size, parts, pause in (5 << 20, 1, 0), (20 << 20, 1, 0), (2 << 20, 30, 0.1):
    for chunked in False, True:
        c = http.client.HTTPConnection(sys.argv[1], timeout=60)
        def body():
            for _ in range(parts):
                yield b"x" * (size // parts)
                time.sleep(pause)
        length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": size // parts * parts}
        c.request("POST", "/", body=body(), headers=length, encode_chunked=chunked)
        r = c.getresponse()
        print(r.status, r.headers["Retry-After"] is not None, b"quota" in r.read())
`

// A client that is denied while it sends a body reads why.
func TestDeniedUploads(t *testing.T) {
	t.Parallel()
	for name, cost := range map[string]string{"plain": "1", "usage": "{tokens: {estimate: 1}}"} {
		s, _ := openProxy(t, "rules: [{name: r, limits: 1/h, cost: "+cost+"}]\n")
		s.send(t, "GET", "/", nil)
		python := exec.CommandContext(t.Context(), "python3", "-c", uploads,
			strings.TrimPrefix(s.url, "http://"))
		out, err := python.CombinedOutput()
		if want := strings.Repeat("429"+strings.Repeat(" True", 2)+"\n", 6); err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Behind nginx, only failed logins count.
func TestNginxFailedLogins(t *testing.T) {
	t.Parallel()
	found := files(t, "nginx.md")
	rules, rule, _ := strings.Cut(found["headgate.yaml"], "  - name: login")
	found["headgate.yaml"] = strings.Replace(rules, "5/m", "100/m", 1) + found["logins.yaml"]
	if rule == "" {
		t.Fatal("the page has no rule login")
	}
	logins := freeAddress(t)
	found["nginx.conf"] = edit(t, found["nginx.conf"], "        location @limited {",
		strings.ReplaceAll(found["logins.conf"], "127.0.0.1:8090", logins)+"        location @limited {")
	s := gateways["nginx"].openWith(t, found, "--proxy", logins+"=http://127.0.0.1:3000")
	login := func(password string, want int) {
		t.Helper()
		a := s.send(t, "POST", "/login", strings.NewReader(password), forged...)
		if got := s.app.since(); a.StatusCode != want || (len(got) == 1) != (want != 429) {
			t.Errorf("%s: %s; the app got %q", password, a.Status, got)
		}
	}
	for range 10 {
		login("right", 200)
	}
	for range 4 {
		login("wrong", 401)
		login("right", 200)
	}
	login("wrong", 401)
	login("wrong", 429)
	login("right", 429)
	a := s.send(t, "GET", "/", nil)
	if got := a.Header.Get("Ratelimit"); !strings.HasPrefix(got, fmt.Sprintf(`"address";r=%d;`, 100-19-1)) {
		t.Errorf("RateLimit is %s", got)
	}
}
