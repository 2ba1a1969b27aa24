//go:build gateways

package gateways

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// equalRules limit by all that a client can write.
const equalRules = `
rules:
  - {name: address, key: ip, limits: 4/h}
  - {name: login, match: {method: POST, path: /login}, key: ip, limits: 2/h}
  - {name: api, match: {path: /api/*}, key: [ip, "header:X-Api-Key"], limits: 3/h}
  - {name: host, match: {host: app.example}, key: ip, limits: 3/h}
  - {name: bytes, key: [ip, host, path, "header:X-Api-Key", "cookie:a"], limits: 3/h}
`

// attempt is a request as a client writes it.
type attempt struct {
	method, target, host string
	fields               []string // "Name: value"
}

// one sends an attempt over HTTP/1, and returns the answer without its body.
func (a attempt) one(t *testing.T, conn net.Conn) (status int, header http.Header) {
	t.Helper()
	_, _ = io.WriteString(conn, a.method+" "+a.target+" HTTP/1.1\r\nHost: "+a.host+"\r\nConnection: close\r\n"+
		strings.Join(append(slices.Clone(a.fields), "\r\n"), "\r\n"))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil
	}
	_ = r.Body.Close()
	return r.StatusCode, r.Header
}

// two sends an attempt over HTTP/2.
func (a attempt) two(t *testing.T, conn net.Conn) (status int, header http.Header) {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	add := func(name, value string) { _ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	add(":method", a.method)
	add(":scheme", "http")
	add(":authority", a.host)
	add(":path", a.target)
	for _, field := range a.fields {
		name, value, _ := strings.Cut(field, ": ")
		add(strings.ToLower(name), value)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.MaxHeaderListSize = 1 << 20
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings()
	const most = 16 << 10 // of a frame
	first := block.Next(most)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: block.Len() == 0,
	})
	for block.Len() > 0 {
		_ = framer.WriteContinuation(1, block.Len() <= most, block.Next(most))
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return 0, nil
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			header = make(http.Header)
			for _, field := range f.RegularFields() {
				header.Add(field.Name, field.Value)
			}
			status, _ = strconv.Atoi(f.PseudoValue("status"))
			return status, header
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return 0, nil
		}
	}
}

var times = regexp.MustCompile(`;t=\d+`)

// decided sends an attempt to s from an address, and returns the status and what remains. A request
// that s refuses without a decision is "refused".
func (s *site) decided(t *testing.T, from string, send func(*testing.T, net.Conn) (int, http.Header)) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	status, header := send(t, conn)
	app := s.app.since()
	limits := times.ReplaceAllString(header.Get("Ratelimit"), "")
	if (status == http.StatusOK) != (len(app) == 1) || status == http.StatusOK && limits == "" {
		t.Errorf("%s: status %d, %s; the app got %.60q", s.url, status, limits, app)
	}
	if status != http.StatusOK && status != http.StatusTooManyRequests {
		return "refused"
	}
	return fmt.Sprint(status, " ", limits, " ", header.Get("X-Ratelimit-Remaining"))
}

// attempts are what clients may write to avoid a rule, or to be somebody else.
func attempts() []attempt {
	long := func(n int) string { return strings.Repeat("a", n) }
	var all []attempt
	for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "login"} {
		for _, target := range []string{"/login", "/"} {
			all = append(all, attempt{method, target, "app.example", nil})
		}
	}
	for _, target := range []string{
		"/login/", "//login", "/./login", "/../login", "/a/../login", "/a/..//login", "/a//../login", "/%6cogin",
		"/%6Cogin", "/login%2f", "/%2flogin", "/a%2f..%2flogin", "/a/%2e%2e/login", "/a/.%2e/login", "/%2e/login",
		"/login;v=1", "/login;", "/login%3bv=1", "/a;b/../login", "/login;/x", "/;a/login", "/LOGIN", "/login%00",
		"/login%20", "/login%0a", "/login?", "/login?a=/free", "/login?#x", "/free?/login", "/login%23x", "/login#x",
		"/login#", "#/login", "/login\\", "\\login", "/a\\..\\login", "/%5clogin", "/login%c0%af", "/%c0%aflogin",
		"/%ff", "/%zz", "/%", "/login%", "/\xff", "/\xc3\xa4", "/login\xff", "http://app.example/login",
		"http://other/login", "http://other", "HTTP://app.example/login", "*", "login", "", "/api", "/api/", "/api/x",
		"/api/../login", "/API/x", "/api%2fx", "/api;x/y", "/" + long(8_000), "/api/" + long(30_000), "/api/?" + long(30_000),
	} {
		all = append(all, attempt{"POST", target, "app.example", nil})
	}
	for _, host := range []string{
		"app.example:80", "app.example.", "APP.EXAMPLE", "other", "app.example, other", "127.0.0.1", "[::1]:9", "a b", "",
	} {
		all = append(all, attempt{"POST", "/login", host, nil})
	}
	for _, fields := range [][]string{
		forged, {"X-Forwarded-Uri: /free"}, {"X-Forwarded-Method: GET"}, {"X-Original-URL: /free", "X-Rewrite-URL: /free"},
		{"X-HTTP-Method-Override: GET"}, {"X-Forwarded-Host: other"}, {"Forwarded: for=203.0.113.9;host=other"},
		{"X-Forwarded-For: 203.0.113.9"}, {"X-Forwarded-For: 203.0.113.9, 127.0.0.1"}, {"X-Real-IP: 203.0.113.9"},
		{"X-Envoy-External-Address: 203.0.113.9"}, {"X-Envoy-Original-Path: /free"}, {"X-Envoy-Original-Host: other"},
		{"X-Api-Key: a"}, {"X-Api-Key: a", "X-Api-Key: b"}, {"X-Api-Key: a,b"}, {"X-Api-Key: "}, {"X-Api-Key: \xff\xfe"},
		{"X-Api-Key: \xc3\xa4 \t b"}, {"X_Api_Key: a"}, {"Cookie: a=1"}, {"Cookie: a=1; a=2"}, {"Cookie: a=1", "Cookie: a=2"},
		{"Cookie: b=1; a=\"1\""}, {"Cookie: a"}, {"Cookie: ;;a=1"}, {"Authorization: Bearer a"},
		{"X-Api-Key: " + long(128)}, {"X-Api-Key: " + long(129)}, {"X-Api-Key: " + long(40_000)},
		{"X-Large: " + long(30_000), "X-Api-Key: " + long(28_000)}, {"X-Large: " + long(70_000)},
		slices.Repeat([]string{"X-Other: " + long(600)}, 90),
	} {
		all = append(all, attempt{"POST", "/login", "app.example", fields}, attempt{"GET", "/api/x", "app.example", fields})
	}
	return append(all,
		attempt{"POST", "/api/Service/Method", "app.example", []string{"Content-Type: application/json", "TE: trailers"}},
		attempt{"OPTIONS", "/login", "app.example", []string{"Origin: https://a", "Access-Control-Request-Method: POST"}},
		attempt{"OPTIONS", "/login", "app.example", []string{"Origin: https://a", "Access-Control-Request-Method: POST", "Cookie: a=1"}},
	)
}

var (
	ordinary = regexp.MustCompile("^/([!-\"$&-~]|%[0-9a-fA-F]{2})*$")
	isHost   = regexp.MustCompile(`^[\w.]+(:\d+)?$`)
)

// odd reports whether servers may refuse a before it is decided: Envoy refuses fragments, unknown
// methods, bytes that are not ASCII, and over HTTP/2 targets and hosts of another form; the proxy,
// and the app behind Envoy, percent signs that escape nothing.
func (a attempt) odd() bool {
	return a.method == "login" || !ordinary.MatchString(a.target) || !isHost.MatchString(a.host)
}

// Whatever a client sends, Envoy with ext_authz decides as the proxy with the same rules does: the
// same statuses, and the same remains.
func TestEnvoyDecidesAsTheProxy(t *testing.T) {
	t.Parallel()
	found := files(t, "envoy.md")
	found["headgate.yaml"] = equalRules
	envoy := gateways["Envoy"].openWith(t, found)
	proxy, _ := openProxy(t, equalRules)
	count := make(map[string]int)
	for i, a := range attempts() {
		for version, send := range []func(*testing.T, net.Conn) (int, http.Header){a.one, a.two} {
			name := fmt.Sprintf("HTTP/%d %s %.40q %q %.60q", version+1, a.method, a.target, a.host, a.fields)
			from := fmt.Sprintf("127.%d.%d.%d", 10+version, i/200, i%200+1)
			for range 4 {
				one, other := envoy.decided(t, from, send), proxy.decided(t, from, send)
				count[one[:3]]++
				if a.odd() && (one == "refused" || other == "refused") {
					break
				}
				if one != other {
					t.Errorf("%s: Envoy %s, the proxy %s", name, one, other)
					break
				}
			}
		}
	}
	if count["200"] < 600 || count["429"] < 300 {
		t.Errorf("%v", count)
	}
	t.Logf("%v", count)
}

// alike is an answer to a call over gRPC, for a comparison.
func alike(err error, header metadata.MD) string {
	s := status.Convert(err)
	limits := times.ReplaceAllString(strings.Join(header.Get("ratelimit"), ", "), "")
	return fmt.Sprintf("%s %q %s, %d details", s.Code(), s.Message(), limits, len(s.Proto().GetDetails()))
}

// Calls over gRPC get the same statuses from Envoy with ext_authz as from the proxy, one by one and
// as streams.
func TestEnvoyDecidesCallsAsTheProxy(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n" +
		"  - {name: check, match: {path: /grpc.health.v1.Health/Check}, key: \"header:X-User\", limits: 2/h}\n" +
		"  - {name: watch, match: {path: /grpc.health.v1.Health/*}, key: \"header:X-User\", limits: 3/h}\n"
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(app, health.NewServer())
	go func() { _ = app.Serve(l) }()
	t.Cleanup(app.Stop)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	found := files(t, "envoy.md")
	found["headgate.yaml"] = rules
	_, http2, _ := strings.Cut(found["envoy.yaml"], "    typed_extension_protocol_options:")
	http2, _, _ = strings.Cut(http2, "    load_assignment:")
	config := edit(t, found["envoy.yaml"], "port_value: 3000", "port_value: "+port)
	found["envoy.yaml"] = edit(t, config, "  - name: app\n", "  - name: app\n    typed_extension_protocol_options:"+http2)
	envoy := gateways["Envoy"].openWith(t, found)
	dir, address := directory(t), freeAddress(t)
	write(t, dir, map[string]string{"headgate.yaml": rules})
	startHeadgate(t, dir, "--proxy", address+"=h2c://"+l.Addr().String())
	clients := make([]grpc_health_v1.HealthClient, 0, 2)
	for _, to := range []string{strings.TrimPrefix(envoy.url, "http://"), address} {
		conn, err := grpc.NewClient("passthrough:"+to, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		clients = append(clients, grpc_health_v1.NewHealthClient(conn))
	}
	for user, calls := range map[string]string{"a": "ccccww", "b": "wwwwc", "c": "wcwcw"} {
		var all [2][]string
		for i, client := range clients {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-user", user), time.Minute)
			for _, call := range calls {
				var header metadata.MD
				if call == 'c' {
					_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
				} else {
					var stream grpc_health_v1.Health_WatchClient
					if stream, err = client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}); err == nil {
						_, err = stream.Recv()
						header, _ = stream.Header()
					}
				}
				all[i] = append(all[i], alike(err, header))
			}
			cancel()
		}
		if !slices.Equal(all[0], all[1]) || !strings.HasPrefix(all[0][0], "OK") ||
			!strings.HasPrefix(all[0][len(calls)-1], "ResourceExhausted") {
			t.Errorf("%s: Envoy\n%s\nthe proxy\n%s", calls, strings.Join(all[0], "\n"), strings.Join(all[1], "\n"))
		}
	}
}
