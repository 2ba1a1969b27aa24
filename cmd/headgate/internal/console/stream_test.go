package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
)

// serve serves c, and lets no request take longer than timeout, if that is not 0.
func (c *console) serve(timeout time.Duration) *httptest.Server {
	c.t.Helper()
	s := httptest.NewUnstartedServer(c)
	s.Config.ReadTimeout, s.Config.WriteTimeout = timeout, timeout
	s.EnableHTTP2 = true
	s.StartTLS()
	c.t.Cleanup(s.Close)
	return s
}

// stream opens a stream of events with the client of s, by the token if it is not empty.
func (c *console) stream(ctx context.Context, s *httptest.Server, token string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/console/api/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// states reads n states from lines, and returns how many there were.
func states(lines *bufio.Scanner, n int) (read int) {
	for read < n && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: state") {
			read++
		}
	}
	return read
}

// A stream lasts longer than requests may take, over HTTP/1.1 and HTTP/2. It ends with its token,
// and when the server does.
func TestStream(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			testStream(t, protocol)
		})
	}
}

func testStream(t *testing.T, protocol string) {
	t.Helper()
	c := newConsole(t, nil, secret)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Run(ctx)
	s := c.serve(2 * time.Second)
	if protocol == "HTTP/1.1" {
		s.Client().Transport.(*http.Transport).ForceAttemptHTTP2 = false
		s.Client().Transport.(*http.Transport).TLSClientConfig.NextProtos = nil
	}
	open := c.stream(t.Context(), s, "")
	byToken := c.stream(t.Context(), s, secret)
	defer open.Body.Close()
	defer byToken.Body.Close()
	if open.Proto != protocol || open.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %d %s", open.Proto, open.StatusCode, open.Header)
	}
	lines, rest := bufio.NewScanner(open.Body), bufio.NewScanner(byToken.Body)
	lines.Buffer(nil, 1<<20)
	rest.Buffer(nil, 1<<20)
	if n := states(lines, 4); n != 4 { // in more than two seconds
		t.Fatalf("the stream ended after %d states: %v", n, lines.Err())
	}
	c.api.Use(httpapi.Settings{Tokens: []string{"another"}})
	if states(rest, 1e6) == 1e6 {
		t.Error("the stream of a token that is gone did not end")
	}
	if n := states(lines, 1); n != 1 {
		t.Fatal("a stream without a token ended, too")
	}
	cancel()
	if states(lines, 1e6) == 1e6 {
		t.Error("the stream did not end")
	}
}
