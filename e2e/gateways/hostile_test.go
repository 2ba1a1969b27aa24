//go:build gateways

package gateways

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// labelled is a rule that puts what clients send into keys and into labels of metrics.
const labelled = `
  - {name: bytes, key: [ip, "header:X-Api-Key", "cookie:a", host, path], limits: 1000/h, label_keys: true}
`

// hostile are requests that gateways or headgate may refuse, or read in other ways than the app.
func hostile() map[string]string {
	lines := func(target string, fields ...string) string {
		return target + " HTTP/1.1\r\n" + strings.Join(append(fields, "Connection: close"), "\r\n") + "\r\n\r\n"
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	requests := make(map[string]string)
	for _, field := range []string{"Cookie: a=", "X-Api-Key: ", "Authorization: ", "X-Other: ", "Host: "} {
		host := "Host: h"
		if field == "Host: " {
			host = "X-Other: h"
		}
		for _, value := range []string{
			"\x01", "a\x01b", "\x7f", "\x1b[0m", "\x00", "\x0b", "\xff", "\xc3\x28", "\x80\x01", "a b\tc", "",
		} {
			requests[field+strconv.Quote(value)] = lines("GET /", host, field+value)
		}
		for _, n := range []int{7_000, 14_000, 15_000, 15_200, 15_300, 15_500, 16_000, 30_000, 60_000, 300_000} {
			requests[field+strconv.Itoa(n)] = lines("GET /", host, field+long(n))
		}
	}
	for _, target := range []string{
		"/\xff", "/%ff", "/%00", "/\x01", "/\x7f", "/a b", "http:login", "http:/login", "http:%6cogin",
		"http://h", "http://h/%ff", "*", "login", "//login", "/%c0%af", "/" + long(7_000), "/" + long(15_000),
		"/" + long(16_100), "/" + long(40_000),
	} {
		requests["GET "+strconv.Quote(target[:min(len(target), 20)])+strconv.Itoa(len(target))] =
			lines("GET "+target, "Host: h")
	}
	for _, method := range []string{"get", "G\x01T", "FOO", "PRI", "TRACE", "CONNECT", "OPTIONS", long(3_000)} {
		requests["method "+strconv.Quote(method[:min(len(method), 20)])] = lines(method+" /", "Host: h")
	}
	for name, fields := range map[string][]string{
		"two cookies": {"Host: h", "Cookie: a=1", "Cookie: a=\x01"}, "no host": {}, "two hosts": {"Host: h", "Host: g"},
		"hop by hop": {"Host: h", "Connection: X-Forwarded-For, X-Forwarded-Uri, X-Api-Key"},
		"h2c":        {"Host: h", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"},
		"expect":     {"Host: h", "Expect: 100-continue", "Content-Length: 9"},
		"chunked":    {"Host: h", "Transfer-Encoding: chunked"}, "length": {"Host: h", "Content-Length: 9"},
		"many fields": append([]string{"Host: h"}, strings.Split(strings.Repeat("X-Other: a\n", 90), "\n")[:90]...),
		"too many":    append([]string{"Host: h"}, strings.Split(strings.Repeat("X-Other: a\n", 900), "\n")[:900]...),
		"forged":      append([]string{"Host: h"}, forged...),
	} {
		requests[name] = lines("GET /", fields...)
	}
	return requests
}

// from sends the bytes of a request from an address of this machine. The status is 0 if there is
// no answer.
func (s *site) from(t *testing.T, address, text string) (status int) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	to := strings.TrimPrefix(s.url, "http://")
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, strings.ReplaceAll(text, "Host: h\r\n", "Host: "+to+"\r\n"))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = r.Body.Close()
	return r.StatusCode
}

const plain = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

// Whatever a client sends over its limit, the app does not get it, and no other client notices.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		for _, open := range []bool{false, true} {
			g.rules = labelled
			s := g.open(t, open)
			for range 5 {
				if got := s.from(t, "127.0.0.1", plain); got != http.StatusOK {
					t.Fatalf("status %d before the limit", got)
				}
			}
			s.app.received.Store(0)
			other := 0
			for name, text := range hostile() {
				status := s.from(t, "127.0.0.1", text)
				if s.app.received.Load() > 0 {
					t.Errorf("fail open %t: %s reached the app, with status %d", open, name, status)
				}
				if got := s.from(t, "127.0.0.1", plain); got != http.StatusTooManyRequests {
					t.Errorf("fail open %t: after %s (%d): status %d; want 429", open, name, status, got)
				}
				other++
				address := "127.0.1." + strconv.Itoa(other)
				if got := s.from(t, address, plain); got != http.StatusOK {
					t.Errorf("fail open %t: after %s (%d): status %d for another client", open, name, status, got)
				}
				s.app.received.Store(0)
			}
		}
	})
}

// Only a headgate that does not answer lets a gateway fail open, and no status of an answer.
func TestStatusesDoNotFailOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		if g.grpc {
			return // an answer has no status: an error is as if there were none
		}
		for _, open := range []bool{false, true} {
			s := g.open(t, open)
			for _, status := range []int{301, 400, 401, 404, 408, 413, 431, 500, 501, 503} {
				s.relay.answer(t, status)
				got := s.from(t, "127.0.0.1", plain)
				if s.app.received.Load() > 0 || got == http.StatusOK {
					t.Errorf("fail open %t: %d from headgate: status %d", open, status, got)
				}
			}
		}
	})
}
