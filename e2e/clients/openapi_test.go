//go:build clients

package clients

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const described = `
api:
  allow_inline_limits: true
rules:
  - {name: login, limits: [5/h]}
  - {name: tokens, limits: [1000/h, 5000/d fixed-window]}
  - {name: log, limits: [10/m sliding-log], mode: shadow}
  - {name: exports, permits: 2}
`

// known are values in place of texts of the description, so that requests get past their checks.
var known = strings.NewReplacer(
	"One of rule and limit is required.", "One of rule and limit is required.\n      enum: [login, tokens, log]",
	"A limit without a name, if the file has api.allow_inline_limits.",
	"A limit.\n      enum: [100/m, 10/s burst 50, 5/15m sliding-log]",
	"The name of a rule with permits.,", "A rule., enum: [exports],",
	"The name of a rule in the file.,", "A rule., enum: [login, tokens, log],",
	"Limits that replace those of the rule., type: array, items: {",
	"Limits., type: array, items: {enum: [100/m, 7/d fixed-window], ",
	"The time at which the override expires; never by default.,",
	`A time., enum: ["2099-01-01T00:00:00Z"],`,
)

// The server answers whatever its description allows, and refuses the rest, as schemathesis finds.
func TestOpenAPI(t *testing.T) {
	const minimum = 2000
	dir := t.TempDir()
	base := startServer(t, described)
	response, err := http.Get(base + "/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	copied := known.Replace(string(text))
	if n := strings.Count(copied, "enum: [login, tokens, log]"); n != 2 {
		t.Fatalf("%d fields name a rule; want 2", n)
	}
	if err := os.WriteFile(dir+"/openapi.yaml", []byte(copied), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("testdata/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, dir, nil, filepath.Dir(pythonPath(t))+"/schemathesis", "--config-file", config,
		"run", "openapi.yaml", "--url", base, "--max-examples", "80", "--generation-deterministic",
		"--continue-on-failure", "--no-color")
	for _, want := range []string{`(\d+) generated`, `(3) covered / 3 selected`} {
		found := regexp.MustCompile(want).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("there is no %q in\n%s", want, out)
		}
		if n, _ := strconv.Atoi(found[1]); n != 3 && n < minimum {
			t.Errorf("%d cases; want at least %d", n, minimum)
		}
	}
}
