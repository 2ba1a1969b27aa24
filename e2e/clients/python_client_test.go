//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pythonRules are the rules that headgate_test.py and recipes_test.py count on.
const pythonRules = `
api:
  tokens: [secret]
  allow_inline_limits: true
rules:
  - {name: login, key: [ip], any_key: true, limits: [5/h]}
  - {name: tokens, key: ["header:x-user"], any_key: true, limits: [1000/d]}
  - {name: exports, key: ["header:x-user"], any_key: true, permits: 2}
  - {name: mail, limits: 5/h}
`

// The client of the server works against the real server, and so does what its pages show.
func TestPythonClient(t *testing.T) {
	server := filepath.Join(t.TempDir(), "headgate")
	run(t, "../..", nil, "go", "build", "-o", server, "./cmd/headgate")
	env := []string{"HEADGATE_URL=" + startServer(t, server, pythonRules), "PYTHONDONTWRITEBYTECODE=1"}
	for _, tests := range []string{"headgate_test.py", "recipes_test.py"} {
		out := run(t, python, env, pythonPath(t), "-W", "error", tests)
		if !strings.Contains(out, "\nOK\n") {
			t.Errorf("%s prints\n%s", tests, out)
		}
	}
	code := blocks(t, python+"/README.md", "python")
	url := startServer(t, server, blocks(t, python+"/README.md", "yaml"))
	code = strings.ReplaceAll(code, "http://127.0.0.1:8080", url)
	want := regexp.MustCompile(`(?s)^True \[4, 980\]\n980\none of 2\nwaited\n` +
		`(hello ann\n){5}denied; retry after 7\d\d\.\d+ s\n4 left\n$`)
	if out := run(t, python, env, pythonPath(t), "-c", code); !want.MatchString(out) {
		t.Errorf("the README prints\n%s\nwant %s", out, want)
	}
}

// startServer starts a server with these rules, and returns its URL. It ends with the test.
func startServer(t *testing.T, program, rules string) string {
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
