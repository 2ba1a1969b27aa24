package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// server is a running headgate serve.
type server struct {
	http, grpc, debug string // addresses

	cmd   *exec.Cmd
	log   *output
	ended chan struct{}
	err   error // of the process, once ended is closed
}

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

var listening = regexp.MustCompile(`msg=listening listener=(\w+) address=(\S+)`)

// serve starts headgate serve with a rules file. It must exit with 0 when the test ends.
func serve(t *testing.T, rules string, args ...string) *server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return serveFile(t, file, args...)
}

func serveFile(t *testing.T, file string, args ...string) *server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{log: &output{}, ended: make(chan struct{})}
	args = append([]string{"serve", "--config", file,
		"--log-level", "debug", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--debug", "127.0.0.1:0"}, args...)
	s.cmd = exec.CommandContext(context.Background(), path, args...)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		<-s.ended
		if s.err != nil {
			t.Errorf("headgate serve: %v", s.err)
		}
		if t.Failed() {
			t.Logf("headgate serve wrote:\n%s", s.log)
		}
	})
	until(t, "listening", func() bool {
		for _, found := range listening.FindAllStringSubmatch(s.log.String(), -1) {
			switch found[1] {
			case "http":
				s.http = found[2]
			case "grpc":
				s.grpc = found[2]
			case "debug":
				s.debug = found[2]
			}
		}
		select {
		case <-s.ended:
			t.Fatalf("headgate serve: %v\n%s", s.err, s.log)
		default:
		}
		return s.http != "" && s.grpc != "" && s.debug != ""
	})
	return s
}

// get returns the body of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url) //nolint:noctx,gosec // the server is ours
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// usage is what the process holds.
type usage struct{ goroutines, files, rss int } // rss in KiB

func (s *server) usage(t *testing.T) usage {
	t.Helper()
	var u usage
	text := get(t, "http://"+s.debug+"/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &u.goroutines); err != nil {
		t.Fatalf("%v: %.100s", err, text)
	}
	proc := fmt.Sprintf("/proc/%d", s.cmd.Process.Pid)
	files, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	u.files = len(files)
	u.rss = s.rss(t)
	return u
}

// rss returns the memory of the process that is resident, in KiB.
func (s *server) rss(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no VmRSS in %s", status)
	return 0
}
