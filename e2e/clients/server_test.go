//go:build clients

package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the server under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(built(m))
}

// built runs the tests with a server that it builds.
func built(m *testing.M) int {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "headgate")
	args := []string{"build", "-o", program, "./cmd/headgate"}
	build := exec.CommandContext(context.Background(), "go", args...)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
		return 1
	}
	return m.Run()
}

// startServer starts a server with these rules, and returns its URL. It ends with the test.
func startServer(t *testing.T, rules string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", "--config", file,
		"--http", "127.0.0.1:0", "--grpc", "off", "--debug", "off", "--log-format", "json")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; _ = cmd.Wait() })
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var entry struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "listening" {
				address <- entry.Address
			}
		}
	}()
	select {
	case found := <-address:
		return "http://" + found
	case <-ended:
		t.Fatal("the server ended")
		return ""
	}
}
