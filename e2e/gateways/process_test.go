//go:build gateways

package gateways

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// output collects what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start runs a program in dir until the test ends.
func start(t *testing.T, dir string, args ...string) *output {
	t.Helper()
	out, _ := run(t, dir, args...)
	return out
}

// run runs a program in dir until stop, or until the test ends.
func run(t *testing.T, dir string, args ...string) (out *output, stop func()) {
	t.Helper()
	out = &output{}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ended by a signal
		close(ended)
	}()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", args[0], out)
		}
	})
	t.Cleanup(stop)
	return out, stop
}

// until waits until ok, for some seconds at most.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// startHeadgate runs headgate serve, and returns its address.
func startHeadgate(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return startListener(t, dir, "http", args...)
}

// startListener runs headgate serve, and returns the address of one of its listeners.
func startListener(t *testing.T, dir, listener string, args ...string) string {
	t.Helper()
	args = append([]string{
		headgate, "serve", "--config", "headgate.yaml",
		"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--debug", "off",
	}, args...)
	out := start(t, dir, args...)
	listening := regexp.MustCompile(`listener=` + listener + ` address=(\S+)`)
	var found []string
	until(t, "headgate listens", func() bool {
		found = listening.FindStringSubmatch(out.String())
		return found != nil
	})
	return found[1]
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := redistest.FreeAddr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// reachable reports whether something listens on address.
func reachable(t *testing.T, address string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// directory returns an empty directory that the user of a gateway's workers can enter.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := os.Chmod(filepath.Dir(dir), 0o755) //nolint:gosec // nothing in it is secret
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
