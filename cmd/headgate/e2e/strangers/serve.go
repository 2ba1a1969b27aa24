package strangers

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/serve"
)

// serveName is the name under which the binary of the tests is the server. That is quicker than
// building headgate, and go test knows that the tests depend on its code.
const serveName = "headgate-serve"

//go:embed rules.yaml
var rules []byte

// Main is the TestMain of a package that calls Run.
func Main(m *testing.M) {
	if filepath.Base(os.Args[0]) == serveName {
		os.Exit(serveUntilTerminated(os.Args[1]))
	}
	os.Exit(m.Run())
}

func serveUntilTerminated(rules string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := serve.Run(ctx, serve.Options{
		Files: []string{rules},
		HTTP:  serve.Off, GRPC: "127.0.0.1:0", Debug: "127.0.0.1:0",
		Grace: serve.DefaultGrace, Connections: serve.DefaultConnections,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)), Out: os.Stdout,
	})
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}

// server is a running headgate serve.
type server struct {
	grpc  string // addresses
	debug string
}

// startServer starts what headgate serve runs, with rules.yaml and a memory of its own. It has to
// end well with the test.
func startServer(t *testing.T) server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Args = []string{serveName, file}
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
