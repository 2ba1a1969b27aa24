//go:build unix

package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/eventually"
)

// fetch returns the body of a page, or the error.
func fetch(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// A request that is under way when the server ends is answered, and nothing else is accepted.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "answered")
	}))
	defer app.Close()
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--proxy", "127.0.0.1:0="+app.URL)...)...)
	done := make(chan string, 1)
	go func() { done <- fetch(t.Context(), "http://"+s.addresses["proxy"]+"/slow") }()
	<-arrived
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "connections are refused", func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addresses["http"])
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-done; got != "answered" {
		t.Errorf("the request under way: %s", got)
	}
	<-s.done
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d: %s", code, s.logged())
	}
}

// A request that does not end is cut off after the grace, and the exit code is 0 all the same.
func TestServeGrace(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer app.Close()
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--grace", "100ms",
		"--proxy", "127.0.0.1:0="+app.URL)...)...)
	go fetch(t.Context(), "http://"+s.addresses["proxy"]+"/")
	<-arrived
	if code := s.end(syscall.SIGTERM); code != 0 || !strings.Contains(s.logged(), "requests were cut off") {
		t.Errorf("exit %d: %s", code, s.logged())
	}
}

// Huge headers are refused, and a connection beyond the bound replaces the one that is idle longest.
func TestServeBounds(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--max-connections", "2")...)...)
	ask := func(c net.Conn) error {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(c, "GET /-/healthy HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	var open []net.Conn
	for i := range 3 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addresses["http"])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := ask(c); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
		open = append(open, c)
	}
	if err := ask(open[0]); err == nil {
		t.Error("three connections are open; want at most two")
	}
	if err := ask(open[1]); err != nil {
		t.Errorf("the connection that was used later: %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addresses["http"]+"/healthcheck", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Huge", strings.Repeat("x", 100<<10))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 100 KiB: %d", resp.StatusCode)
	}
}

// With tls in the file every listener asks for it, and a certificate that is renewed is shown
// without a restart.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	renew := func(name string) {
		cert, key := selfSigned(t, name)
		writeFile(t, filepath.Join(dir, "cert.new"), cert)
		writeFile(t, filepath.Join(dir, "key.new"), key)
		for _, name := range []string{"cert", "key"} {
			if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew("first.example")
	file := writeFile(t, filepath.Join(dir, "rules.yaml"),
		"tls: {cert: "+filepath.Join(dir, "cert")+", key: "+filepath.Join(dir, "key")+"}\n")
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", file)...)...)
	shown := func(listener string) string {
		dialer := tls.Dialer{Config: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // the test reads the certificate itself
			NextProtos:         []string{"h2"}, MinVersion: tls.VersionTLS12,
		}}
		c, err := dialer.DialContext(t.Context(), "tcp", s.addresses[listener])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conn, _ := c.(*tls.Conn)
		return conn.ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	for listener := range s.addresses {
		if name := shown(listener); name != "first.example" {
			t.Errorf("%s shows %s", listener, name)
		}
	}
	renew("second.example")
	for _, listener := range []string{"http", "grpc"} {
		eventually.True(t, listener+" shows the new certificate", func() bool {
			return shown(listener) == "second.example"
		})
	}
}
