//go:build gateways

package gateways

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// gateway is a gateway with the page about it.
type gateway struct {
	page    string
	config  string // the file of the gateway itself
	command []string
	down    []int  // how it answers while headgate is down, or hung
	rules   string // added to those of the page
	grpc    bool   // the gateway asks over gRPC
	connect bool   // the gateway opens a connection for each question
	logs    bool   // the configuration logs why headgate did not answer
	// failOpen edits the configuration as the page says.
	failOpen func(t *testing.T, files map[string]string)
	timeout  [2]string // how the configuration waits for 1 s, and for 9 s
	uploads  [2]string // an edit that lets clients send bodies of 9 MB
	http2    [2]string // an edit that lets clients speak HTTP/2, if the page's files do not
}

var gateways = map[string]gateway{
	"nginx": {
		page: "nginx.md", config: "nginx.conf",
		command: []string{"nginx", "-p", ".", "-e", "stderr", "-c", "nginx.conf"},
		down:    []int{500, 500},
		failOpen: func(t *testing.T, files map[string]string) {
			files["nginx.conf"] = edit(t, files["nginx.conf"], "# error_page 502", "error_page 502")
		},
		timeout: [2]string{"proxy_read_timeout    1s", "proxy_read_timeout 9s"},
		uploads: [2]string{"location / {\n            auth", "location / {\n client_max_body_size 9m; auth"},
		http2:   [2]string{"listen 127.0.0.1:8000", "listen 127.0.0.1:8000 http2"},
	},
	"nginx with Lua": {
		page: "nginx.md", config: "lua.conf",
		command: []string{"nginx", "-p", ".", "-e", "stderr", "-c", "lua.conf"},
		down:    []int{502, 504},
		failOpen: func(t *testing.T, files map[string]string) {
			files["lua.conf"] = edit(t, files["lua.conf"], "-- if answer", "if answer")
		},
		timeout: [2]string{"proxy_read_timeout    1s", "proxy_read_timeout 9s"},
		uploads: [2]string{"location / {\n            access", "location / {\n client_max_body_size 9m; access"},
		http2:   [2]string{"listen 127.0.0.1:8000", "listen 127.0.0.1:8000 http2"},
	},
	"Caddy": {
		page: "caddy.md", config: "Caddyfile",
		command: []string{"caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"},
		down:    []int{502, 504},
		failOpen: func(_ *testing.T, files map[string]string) {
			site := strings.TrimSuffix(files["Caddyfile"], "}\n")
			files["Caddyfile"] = site + files["fail-open"] + "}\n"
		},
		timeout: [2]string{"response_header_timeout 1s", "response_header_timeout 9s"},
		http2:   [2]string{"{\n\tadmin off", "{\n servers {\n protocols h1 h2c\n }\n admin off"},
	},
	"Apache": {
		page: "apache.md", config: "apache.conf", connect: true, logs: true,
		command: []string{"apache2", "-d", ".", "-f", "apache.conf", "-DFOREGROUND"},
		down:    []int{503, 503},
		failOpen: func(t *testing.T, files map[string]string) {
			files["headgate.lua"] = edit(t, files["headgate.lua"], "return 503", "return apache2.DECLINED")
		},
		timeout: [2]string{"http.TIMEOUT = 1", "http.TIMEOUT = 9"},
		http2: [2]string{
			"Listen 127.0.0.1:8000",
			"LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so\nProtocols h2c http/1.1\nListen 127.0.0.1:8000",
		},
	},
	"Envoy": {
		page: "envoy.md", config: "envoy.yaml", grpc: true,
		command: []string{
			envoy(), "-c", "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error",
			"--file-flush-interval-msec", "100",
		},
		down: []int{503, 503},
		failOpen: func(t *testing.T, files map[string]string) {
			files["envoy.yaml"] = edit(t, files["envoy.yaml"], "failure_mode_allow: false", "failure_mode_allow: true")
		},
	},
	"HAProxy": {
		page: "haproxy.md", config: "haproxy.cfg",
		command: []string{"haproxy", "-db", "-f", "haproxy.cfg"},
		down:    []int{503, 503},
		failOpen: func(t *testing.T, files map[string]string) {
			files["haproxy.cfg"] = edit(t, files["haproxy.cfg"],
				"return status 503 if !{ var(txn.limit_status) -m int 200 }",
				"return status 503 if !{ var(txn.limit_status) -m int 200 } !{ var(txn.limit_status) -m int 0 }")
		},
		timeout: [2]string{"local timeout = 1000", "local timeout = 9000"},
	},
}

// app is the service behind the gateway.
type app struct {
	mu       sync.Mutex
	requests []string     // method, path and body of each
	abort    bool         // answer nothing
	received atomic.Int64 // requests, with those that net/http refuses
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "websocket" {
		shout(w)
		return
	}
	body, err := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	got := string(body)
	if len(got) > 1<<20 {
		got = fmt.Sprint(len(got), " bytes")
	}
	a.requests = append(a.requests, r.Method+" "+r.URL.Path+" "+got)
	if a.abort || err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-App", "1")
	w.Header().Set("Ratelimit", `"app";r=9;t=9`) // which must give way
	w.Header().Set("Ratelimit-Policy", `"app";q=9;w=9`)
	if string(body) == "wrong" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, "hello\n")
}

// shout answers each line of a websocket in upper case. Its answer to the key is that of RFC 6455.
func shout(w http.ResponseWriter) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
		"Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	for err == nil {
		_ = both.Flush()
		var line string
		line, err = both.ReadString('\n')
		_, _ = both.WriteString(strings.ToUpper(line))
	}
}

// since returns the requests since the last call.
func (a *app) since() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}

// site is a gateway in front of headgate and an app.
type site struct {
	url    string
	app    *app
	relay  *relay
	client *http.Client
	wrote  *output // by the gateway
}

// open starts all of a site, with the files of the page.
func (g gateway) open(t *testing.T, failOpen bool, args ...string) *site {
	t.Helper()
	found := files(t, g.page)
	if failOpen {
		g.failOpen(t, found)
	}
	return g.openWith(t, found, args...)
}

// openWith starts all of a site with these files.
func (g gateway) openWith(t *testing.T, found map[string]string, args ...string) *site {
	t.Helper()
	s := &site{app: &app{}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	server := httptest.NewUnstartedServer(s.app)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive {
			s.app.received.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	dir := directory(t)
	// By the minute, a slow machine would see tokens come back.
	found["headgate.yaml"] = strings.ReplaceAll(found["headgate.yaml"], "/m", "/h")
	found["headgate.yaml"] += g.rules
	write(t, dir, map[string]string{"headgate.yaml": found["headgate.yaml"]})
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "127.0.0.1:3000", server.Listener.Addr().String())
	}
	listener := "http"
	if g.grpc {
		listener = "grpc"
	}
	s.relay = newRelay(t, startListener(t, dir, listener, args...))
	address := freeAddress(t)
	for name, text := range found {
		// nginx.conf has a service of its own, which gives way to the app.
		text = strings.ReplaceAll(text, "listen 127.0.0.1:3000", "listen "+freeAddress(t))
		text = moved(text, "3000", server.Listener.Addr().String())
		text = moved(moved(text, "8080", s.relay.address), "8081", s.relay.address)
		found[name] = moved(text, "8000", address)
	}
	write(t, dir, found)
	s.wrote = start(t, dir, g.command...)
	until(t, g.config+" listens", func() bool { return reachable(t, address) })
	s.url = "http://" + address
	return s
}

// moved replaces a port of this machine by an address, in the form of Envoy, too.
func moved(text, port, address string) string {
	text = strings.ReplaceAll(text, "127.0.0.1:"+port, address)
	_, other, _ := strings.Cut(address, ":")
	return strings.ReplaceAll(text, "127.0.0.1, port_value: "+port+"}", "127.0.0.1, port_value: "+other+"}")
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// answer is a response with its body.
type answer struct {
	*http.Response

	body string
}

// send sends a request with header fields, given as "Name: value".
func (s *site) send(t *testing.T, method, path string, body io.Reader, fields ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.RawPath, r.URL.RawQuery, _ = strings.Cut(path, "?") // sent as they are
	if r.URL.Path, err = url.PathUnescape(r.URL.RawPath); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(b)}
}
