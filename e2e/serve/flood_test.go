package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const floodRules = `
rules:
  - {name: api, match: {path: /}, key: "header:X-User", limits: 1000000/s}
domains:
  - domain: edge
    descriptors: [{key: wide, limit: 1000000/s}]
`

// dial opens a connection that sends text and then nothing.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	return c
}

// answersOthers fails the test unless s answers a client that is new, soon.
func answersOthers(t *testing.T, s *server, when string) {
	t.Helper()
	began := time.Now()
	c := newClient(t, s)
	defer c.close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthcheck", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.web.Do(r)
	if err != nil {
		t.Errorf("%s: /healthcheck: %v", when, err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: /healthcheck: status %d", when, response.StatusCode)
	}
	if a := c.take(ctx, "api"); !a.granted {
		t.Errorf("%s: /v1/take: %v", when, a.err)
	}
	if a := c.limit(ctx, 0, "wide"); !a.granted {
		t.Errorf("%s: gRPC: %v", when, a.err)
	}
	t.Logf("%s: others are answered after %v", when, time.Since(began).Round(time.Millisecond))
}

// A flood of connections that send nothing, half a request or one request, far beyond the bound,
// keeps nobody out, and a client that was there before is not thrown out.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	most := pick(60, 600)
	s := serve(t, floodRules, "--max-connections", fmt.Sprint(most))
	before := newClient(t, s)
	streamer := dial(t, s.http, "GET /healthcheck HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := streamer.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	base := s.usage(t).files
	for i := range pick(300, 5000) {
		dial(t, s.http, []string{
			"", "POST /v1/take HTTP/1.1\r\nHost:", "GET /healthcheck HTTP/1.1\r\nHost: a\r\n\r\n",
		}[i%3])
		dial(t, s.grpc, "")
		if i%20 == 0 {
			if a := before.take(t.Context(), "api"); a.err != nil {
				t.Errorf("a client from before, after %d connections: %v", i, a.err)
			}
			if a := before.limit(t.Context(), i, "wide"); a.err != nil {
				t.Errorf("a client from before, after %d connections: %v", i, a.err)
			}
		}
	}
	answersOthers(t, s, "a flood of connections")
	if n := s.usage(t).files - base; n > 2*most+10 {
		t.Errorf("the flood holds %d more files; want at most %d", n, 2*most+10)
	}
}

// A header field that is too large is refused, and costs the server little.
func TestHugeHeaderFields(t *testing.T) {
	t.Parallel()
	s := serve(t, floodRules)
	huge := strings.Repeat("a", 1<<20)
	for range 20 {
		url := "http://" + s.http + "/auth/api"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-User", huge)
		response, err := http.DefaultClient.Do(r)
		if err != nil { // the server closed the connection while we sent
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d; want 431", response.StatusCode)
		}
	}
	answersOthers(t, s, "huge header fields")
}

// Clients that send a byte now and then are ended, and hold up nobody.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := serve(t, floodRules)
	var slow []net.Conn
	for range 200 {
		slow = append(slow,
			dial(t, s.http, "POST /v1/take HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"),
			dial(t, s.http, "GET /healthcheck HTTP/1.1\r\nX-"))
	}
	answersOthers(t, s, "400 slow clients")
	if !*long {
		return
	}
	ended := 0
	for deadline := time.Now().Add(40 * time.Second); len(slow) > 0 && time.Now().Before(deadline); {
		c := slow[0]
		_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		_, write := c.Write([]byte("a"))
		n, read := io.Copy(io.Discard, c)
		if write == nil && n == 0 && errors.Is(read, os.ErrDeadlineExceeded) {
			slow = append(slow[1:], c)
			continue
		}
		slow = slow[1:]
		ended++
	}
	t.Logf("%d slow clients were ended", ended)
	if len(slow) > 0 {
		t.Errorf("%d slow clients are still connected", len(slow))
	}
}

// A connection with more streams than are allowed, all of which begin a request and do not end
// it, holds a bounded part of the server, and others are answered.
func TestFloodOfStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, floodRules)
	before := s.usage(t)
	for range pick(3, 20) {
		streams(t, s.grpc, 3000)
	}
	answersOthers(t, s, "a flood of streams")
	after := s.usage(t)
	t.Logf("before %+v, after %+v", before, after)
	if most := before.goroutines + pick(3, 20)*1010 + 100; after.goroutines > most {
		t.Errorf("%d goroutines; want at most %d", after.goroutines, most)
	}
}

// streams opens a connection of HTTP/2 with n streams that do not end.
func streams(t *testing.T, address string, n int) {
	t.Helper()
	c := dial(t, address, http2.ClientPreface)
	go func() { _, _ = io.Copy(io.Discard, c) }()
	f := http2.NewFramer(c, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for i := range n {
		fields.Reset()
		for _, field := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":authority", "a"},
			{":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"},
			{"content-type", "application/grpc"}, {"te", "trailers"},
		} {
			if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
				t.Fatal(err)
			}
		}
		err := f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: fields.Bytes(), EndHeaders: true,
		})
		if err != nil {
			return // the server has closed the connection
		}
	}
}
