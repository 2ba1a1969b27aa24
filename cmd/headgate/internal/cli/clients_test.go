//go:build unix

package cli

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// apiRules are the rules that the clients' tests and docs/serve/http.md count on.
const apiRules = `
api:
  allow_inline_limits: true
rules:
  - {name: login, key: [ip], any_key: true, limits: [5/h]}
  - {name: tokens, key: ["header:x-user"], any_key: true, limits: [1000/d]}
  - {name: exports, key: ["header:x-user"], any_key: true, permits: 2}
  - {name: partner, permits: 10}
  - {name: mail, key: ip, limits: 5/h}
  - {name: free, limits: 5/h, mode: off}
`

// startAPI starts a server with apiRules, and returns its URL. Unless tokens is empty, it is a list
// of tokens in YAML.
func startAPI(t *testing.T, tokens string) string {
	t.Helper()
	text := apiRules
	if tokens != "" {
		text = strings.Replace(text, "api:\n", "api:\n  tokens: "+tokens+"\n", 1)
	}
	return startRules(t, text)
}

// startRules starts a server with these rules and flags, and returns its URL.
func startRules(t *testing.T, text string, flags ...string) string {
	t.Helper()
	file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), text)
	args := slices.Concat([]string{"headgate"}, serveOn, []string{"--config", file}, flags)
	s := startServer(t, nil, args...)
	return "http://" + s.addresses["http"]
}

// interpreter returns the path of an interpreter; scripts/deps installs it.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	path, err := osexec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: install it with scripts/deps %s", err, name)
	}
	return path
}

// run runs a program in a directory, and returns what it prints.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := osexec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// snippets returns the code of one language in a document, in its order.
func snippets(t *testing.T, file, language string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	fence := regexp.MustCompile("(?s)```" + language + "\n(.*?)```")
	for _, found := range fence.FindAllStringSubmatch(string(text), -1) {
		all.WriteString(found[1])
	}
	return all.String()
}

// The client works against the real server, and what its README shows prints what it says.
func TestNodeClient(t *testing.T) {
	t.Parallel()
	node := interpreter(t, "node")
	const dir = "../../../../clients/node"
	env := []string{"HEADGATE_URL=" + startAPI(t, "[secret]")}
	out := run(t, dir, env, node, "headgate.test.mjs")
	if !strings.Contains(out, "# fail 0\n") && !strings.Contains(out, "ℹ fail 0\n") {
		t.Errorf("the tests print\n%s", out)
	}
	code := snippets(t, dir+"/README.md", "js")
	code = strings.Replace(code, "http://127.0.0.1:8080", startRules(t, snippets(t, dir+"/README.md", "yaml")), 1)
	out = run(t, dir, nil, node, "--input-type=module", "--eval", code)
	wantREADME(t, out)
	if !strings.Contains(out, "\nhello\n") || !strings.Contains(out, "\n30 1\n") {
		t.Errorf("the README prints\n%s\nwant a result, and the answer of a fake", out)
	}
	wantDenied(t, run(t, dir, nil, node, "--input-type=module", "--eval", code))
}

// A server that is full loses no call of clients whose connections fit, however many calls they
// make at once.
func TestNodeClientsOfAFullServer(t *testing.T) {
	t.Parallel()
	node := interpreter(t, "node")
	url := startRules(t, apiRules, "--max-connections", "100")
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			out := run(t, "../../../../clients/node", []string{"HEADGATE_URL=" + url}, node, "load.mjs", "60", "12")
			if out != "Map(0) {}\n" {
				t.Errorf("failed calls, by their errors: %s", out)
			}
		})
	}
	clients.Wait()
}

// wantDenied checks what the snippets print the second time, when the wait is denied.
func wantDenied(t *testing.T, out string) {
	t.Helper()
	if !strings.Contains(out, "one of 2\n") || strings.Contains(out, "start in") {
		t.Errorf("the README prints the second time\n%s\nwant no start", out)
	}
}

// wantREADME checks what the snippets of a client print.
func wantREADME(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		"[ *4, *980 *]\n", "start in 720 s\n", "\n980\n", "one of 2\n", "response\n",
	} {
		if !regexp.MustCompile(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(want)).MatchString(out) {
			t.Errorf("the README prints\n%s\nwant %s", out, want)
		}
	}
}
