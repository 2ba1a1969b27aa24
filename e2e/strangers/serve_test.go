package strangers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// binary builds headgate once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headgate-strangers")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "headgate")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "..", "cmd", "headgate")
	build.Stderr = os.Stderr
	return path, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// server is a running headgate serve.
type server struct {
	grpc  string // addresses
	debug string
}

// serve starts headgate serve with the rules of testdata and a memory of its own. It has to end
// well with the test.
func serve(t *testing.T) server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), path, "serve",
		"--config", "testdata/rules.yaml", "--log-format", "json",
		"--grpc", "127.0.0.1:0", "--debug", "127.0.0.1:0", "--http", "127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var s server
	for (s.grpc == "" || s.debug == "") && lines.Scan() {
		var line struct {
			Msg      string `json:"msg"`
			Listener string `json:"listener"`
			Address  string `json:"address"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			switch line.Listener {
			case "grpc":
				s.grpc = line.Address
			case "debug":
				s.debug = line.Address
			}
		}
	}
	rest := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(log)
		rest <- string(b)
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("headgate had ended: %v", err)
		}
		text := <-rest
		if err := cmd.Wait(); err != nil {
			t.Errorf("headgate: %v\n%s", err, text)
		}
	})
	if s.grpc == "" || s.debug == "" {
		t.Fatal("headgate serve does not listen")
	}
	return s
}

// counter is the value of a statistic of the server.
func (s server) counter(t *testing.T, name string) string {
	t.Helper()
	r, err := http.Get("http://" + s.debug + "/stats") //nolint:noctx // the server is ours
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s in %s", name, b)
	return ""
}
