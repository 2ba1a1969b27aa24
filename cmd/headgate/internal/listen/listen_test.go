package listen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener in this process.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (p pipes) Close() error { return nil }

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that sends its header slowly is cut off, and one that is quick is not.
func TestSlowHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		server := Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
		}))
		go func() { _ = server.Serve(l) }()
		defer server.Close() // once l is closed
		defer close(l)
		client, end := net.Pipe()
		l <- end
		started := time.Now()
		var dripping sync.WaitGroup
		dripping.Go(func() {
			for _, b := range []byte("GET / HTTP/1.1\r\nHost: " + strings.Repeat("h", 100)) {
				if _, err := client.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		if b, err := io.ReadAll(client); err != nil || strings.Contains(string(b), "200 OK") {
			t.Errorf("%q, %v", b, err)
		}
		if took := time.Since(started); took < headerTimeout || took > 2*headerTimeout {
			t.Errorf("cut off after %s, want %s", took, headerTimeout)
		}
		client.Close()
		dripping.Wait()

		quick, end := net.Pipe()
		l <- end
		go func() { _, _ = io.WriteString(quick, "GET / HTTP/1.1\r\nHost: h\r\n\r\n") }()
		resp, err := http.ReadResponse(bufio.NewReader(quick), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("a quick client: %v, %v", resp, err)
		}
		resp.Body.Close()
		quick.Close()
		synctest.Wait()
	})
}

func TestOn(t *testing.T) {
	t.Parallel()
	first, err := On(t.Context(), "--http", "127.0.0.1:0", Bounds{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for address, want := range map[string]string{
		first.Addr().String(): "--http " + first.Addr().String() + ": the address is in use; ",
		"nonsense":            "; want host:port of this machine",
	} {
		if l, err := On(t.Context(), "--http", address, Bounds{Connections: 1}); err == nil {
			l.Close()
			t.Errorf("%s is accepted", address)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// A socket that a process left behind is replaced; one that is served, or another file, is not.
func TestSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	l, err := On(t.Context(), "--grpc", "unix:"+path, Bounds{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second, err := On(t.Context(), "--grpc", "unix:"+path, Bounds{Connections: 1})
	if err == nil {
		second.Close()
		t.Error("a socket that is served is replaced")
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := On(t.Context(), "--grpc", "unix:"+file, Bounds{Connections: 1}); err == nil {
		l.Close()
		t.Error("a file is replaced by a socket")
	}
}
