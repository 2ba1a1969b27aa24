//go:build clients

package clients

import (
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
	env := []string{"HEADGATE_URL=" + startServer(t, pythonRules), "PYTHONDONTWRITEBYTECODE=1"}
	for _, tests := range []string{"headgate_test.py", "recipes_test.py"} {
		out := run(t, python, env, pythonPath(t), "-W", "error", tests)
		if !strings.Contains(out, "\nOK\n") {
			t.Errorf("%s prints\n%s", tests, out)
		}
	}
	code := blocks(t, python+"/README.md", "python")
	url := startServer(t, blocks(t, python+"/README.md", "yaml"))
	code = strings.ReplaceAll(code, "http://127.0.0.1:8080", url)
	want := regexp.MustCompile(`(?s)^True \[4, 980\]\n980\none of 2\nwaited\n` +
		`(hello ann\n){5}denied; retry after [67]\d\d\.\d+ s\n4 left\n$`)
	if out := run(t, python, env, pythonPath(t), "-c", code); !want.MatchString(out) {
		t.Errorf("the README prints\n%s\nwant %s", out, want)
	}
}
