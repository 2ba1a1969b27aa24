package serve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/wire"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/eventually"
)

// everyPart has a rule for each part of a key, with labels, permits and costs that clients send.
const everyPart = `
trust: [127.0.0.1/32]
rules:
  - {name: header, key: "header:X-Api-Key", limits: 9000000/s, label_keys: true, permits: 2}
  - {name: host, key: host, limits: 9000000/s, label_keys: true, permits: 2}
  - {name: cookie, key: "cookie:c", limits: 9000000/s, label_keys: true, cost: "header:Cost"}
  - {name: path, key: path, limits: 9000000/s, label_keys: true, cost: "response:X-Cost"}
  - {name: shadow, key: [ip, method], limits: 1/h, label_keys: true, mode: shadow, permits: 1}
  - {name: all, key: [ip, "header:X-Api-Key", "cookie:c", path, host, method, "const:c"],
     limits: 9000000/s, label_keys: true, permits: 2}
  - {name: free, limits: 9000000/s, label_keys: true, permits: 9}
`

// hostile are values that are no text, or text with a meaning somewhere.
var hostile = []string{
	"\xff", "\x80", "\xc3\x28", "\xed\xa0\x80", "\x01", "\x00", "\x7f", "\ufffd", "\u2028", "|", "%", "%7C",
	"*", "\"", "sha256:00", "a b", "{}", "all", "other", strings.Repeat("x", 129), strings.Repeat("\xff", 200),
}

// unharmed checks that s has not panicked, and that no permit is held. Every few calls, it reads the
// metrics, which takes longer.
func (s *server) unharmed(t *testing.T, log *buffer, count int) {
	t.Helper()
	if lines := log.String(); strings.Contains(lines, "panic") || strings.Contains(lines, "does not answer") {
		t.Fatal(log.String())
	}
	permits := s.stores.permits.(*concurrency.Memory)
	eventually.Equal(t, "the number of keys whose permits are held", permits.Keys, 0)
	if count%64 == 1 {
		if page := metricsOf(t, s); !utf8.ValidString(page) || !strings.Contains(page, "headgate_build_info") {
			t.Errorf("the metrics are\n%q", page)
		}
	}
}

// FuzzRequestsOnTheWire: no bytes of a client of the HTTP listener or the proxy are a defect.
func FuzzRequestsOnTheWire(f *testing.F) {
	for _, v := range hostile {
		for _, fields := range []string{
			"GET / HTTP/1.1\r\nHost: h\r\nX-Api-Key: " + v, "GET / HTTP/1.1\r\nHost: h\r\nCookie: c=" + v,
			"GET /" + v + " HTTP/1.1\r\nHost: h", "GET " + v + " HTTP/1.1\r\nHost: h",
			"GET http:" + v + " HTTP/1.1\r\nHost: h", v + " / HTTP/1.1\r\nHost: h",
			"GET / HTTP/1.1\r\nHost: " + v, "GET / HTTP/1.1\r\nHost: h\r\nCost: " + v,
			"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " + v,
			"GET /auth HTTP/1.1\r\nHost: h\r\nX-Forwarded-Uri: /" + v,
			"GET /auth HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + v + "\r\nX-Forwarded-Method: " + v,
			"GET /auth/nginx/path HTTP/1.1\r\nHost: h\r\nX-Original-URI: " + v + "\r\nX-Forwarded-Host: " + v,
			"GET /auth/" + v + " HTTP/1.1\r\nHost: h",
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: " + v + "\r\n\r\n1\r\nx\r\n0\r\n" + v + ": 1",
			"DELETE /v1/keys/free/" + v + " HTTP/1.1\r\nHost: 127.0.0.1",
		} {
			f.Add([]byte(fields + "\r\n\r\n"))
		}
		body := `{"rule": "free", "key": "` + v + `"}`
		for _, path := range []string{"take", "peek", "reserve", "refund", "overrides"} {
			f.Add([]byte("POST /v1/" + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
				"Content-Length: 999\r\n\r\n" + body))
		}
		f.Add([]byte("POST /json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"domain\r\n0\r\n\r\n" + v))
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Cost", r.Header.Get("X-Api-Key"))
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	f.Cleanup(app.Close)
	log := new(buffer)
	s := newTestServer(f, everyPart, log)
	proxy, err := s.proxy(Proxy{Target: app.URL})
	if err != nil {
		f.Fatal(err)
	}
	var addresses []string
	for name, h := range map[string]http.Handler{"http": s.http(), "proxy": proxy} {
		l, err := new(net.ListenConfig).Listen(f.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			f.Fatal(err)
		}
		s.api.Listen(l.Addr())
		s.addHTTP(name, l, h)
		added := s.listeners[len(s.listeners)-1]
		served := make(chan error, 1)
		go func() { served <- added.serve() }()
		f.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = added.shutdown(ctx) // requests are cut off
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				f.Error(err)
			}
		})
		addresses = append(addresses, l.Addr().String())
	}
	count := 0
	f.Fuzz(func(t *testing.T, request []byte) {
		var both sync.WaitGroup // most of their time is a wait for the end of a request
		for _, address := range addresses {
			both.Go(func() {
				for _, status := range statuses(t, address, request) {
					switch status {
					case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported: // CONNECT, HTTP/9
					case http.StatusBadGateway, http.StatusServiceUnavailable:
						// the client left, before or after the decision; if not, there is a line in the log
					default:
						if status >= 500 || status < 200 {
							t.Errorf("%q: status %d\n%s", request, status, log)
						}
					}
				}
			})
		}
		both.Wait()
		count++
		s.unharmed(t, log, count)
	})
}

// statuses sends the bytes of requests, and returns the statuses of the answers.
func statuses(t *testing.T, address string, requests []byte) (list []int) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	// A request that is not complete is not answered, so the end is sent in any case.
	end := func() { _ = conn.(*net.TCPConn).CloseWrite() }
	go func() {
		_, _ = conn.Write(requests) // the server may not read all
		time.AfterFunc(20*time.Millisecond, end)
	}()
	answers := bufio.NewReader(conn)
	for {
		r, err := http.ReadResponse(answers, &http.Request{Method: method(requests, len(list))})
		if err != nil {
			return list
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if r.StatusCode != http.StatusContinue {
			list = append(list, r.StatusCode)
			end()
		}
	}
}

// method returns the method of the first request: the answer to HEAD has no body.
func method(requests []byte, answers int) string {
	if answers == 0 && strings.HasPrefix(string(requests), "HEAD ") {
		return http.MethodHead
	}
	return http.MethodGet
}

// FuzzMessages: no message of Envoy's protocol, in protobuf or JSON, is a defect.
func FuzzMessages(f *testing.F) {
	for _, v := range hostile {
		text := func(tag byte, s string) string { return string([]byte{tag, byte(len(s))}) + s }
		entry := text(0x0a, text(0x0a, "open")+text(0x12, v[:min(len(v), 90)]))
		f.Add([]byte(text(0x0a, "d") + text(0x12, entry)))
		f.Add([]byte(text(0x0a, v[:min(len(v), 90)]) + text(0x12, entry) + "\x18\x7f"))
		f.Add([]byte(`{"domain":"d","descriptors":[{"entries":[{"key":"open","value":"` + v + `"}]}]}`))
	}
	log := new(buffer)
	s := newTestServer(f, "domain: d\ndescriptors:\n"+
		"  - {key: open, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}\n"+
		"  - {key: pre, value: 'a*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 2}}\n", log)
	d, count := decider{s, s.limiter}, 0
	f.Fuzz(func(t *testing.T, message []byte) {
		var request envoy.Request
		var response envoy.Response
		if err := wire.Decode(message, &request); err == nil {
			if err := d.Decide(t.Context(), &request, &response); err == nil {
				_ = wire.AppendResponse(nil, &response)
			}
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(string(message)))
		if s.http().ServeHTTP(w, r); w.Code > 503 || w.Code < 200 {
			t.Errorf("%q: status %d", message, w.Code)
		}
		count++
		s.unharmed(t, log, count)
		if count%64 == 1 {
			w := httptest.NewRecorder()
			s.serveStats(w, r)
			if !utf8.ValidString(w.Body.String()) {
				t.Errorf("statistics are %q", w.Body)
			}
		}
	})
}
