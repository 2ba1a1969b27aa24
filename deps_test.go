package headgate

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requirements of the root module, and why each is there. A program that imports the
// library inherits them all.
var requirements = map[string]string{
	"github.com/redis/go-redis/v9": "the Redis store speaks through it",
	"github.com/sony/gobreaker/v2": "the circuit breaker of fallback; it needs nothing itself",
	"github.com/cespare/xxhash/v2": "go-redis hashes with it",
	"go.uber.org/atomic":           "go-redis counts with it",
	"golang.org/x/sys":             "go-redis checks connections with it",
}

// output runs the go command on this module alone.
func output(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=")
	text, err := cmd.Output()
	if err != nil {
		why := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			why = string(exit.Stderr)
		}
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, why)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestRootPackageLinksTheStandardLibraryOnly(t *testing.T) {
	const self = "github.com/headgate/headgate"
	for _, path := range output(
		t, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".") {
		if path != self && path != "" && !strings.HasPrefix(path, self+"/internal/") {
			t.Errorf("%s links %s, and not the standard library only", self, path)
		}
	}
	// Of the standard library, what would be heavy or out of place in a library
	// that adds and compares numbers.
	standard := output(t, "list", "-deps", "-f", "{{if .Standard}}{{.ImportPath}}{{end}}", ".")
	for path, why := range map[string]string{
		"net/http":      "belongs into httplimit",
		"encoding/json": "a Limit is a text, and encoders find that by themselves",
		"flag":          "belongs into cmd",
		"testing":       "belongs into tests",
		"log":           "errors are returned",
		"log/slog":      "errors are returned",
	} {
		if slices.Contains(standard, path) {
			t.Errorf("%s links %s: %s", self, path, why)
		}
	}
}

func TestRootModuleRequiresLittle(t *testing.T) {
	type module struct {
		Path string `json:"Path"`
	}
	type replacement struct {
		Old module `json:"Old"`
	}
	var mod struct {
		Require []module      `json:"Require"`
		Replace []replacement `json:"Replace"`
		Exclude []module      `json:"Exclude"`
	}
	if err := json.Unmarshal(
		[]byte(strings.Join(output(t, "mod", "edit", "-json"), "\n")), &mod); err != nil {
		t.Fatal(err)
	}
	required := map[string]bool{}
	for _, r := range mod.Require {
		required[r.Path] = true
		if requirements[r.Path] == "" {
			t.Errorf("go.mod requires %s, which each program that imports it inherits", r.Path)
		}
	}
	for path, why := range requirements {
		if !required[path] {
			t.Errorf("go.mod no longer requires %s (%s): drop it here, too", path, why)
		}
	}
	if len(mod.Replace) > 0 || len(mod.Exclude) > 0 {
		t.Errorf("go.mod replaces %v and excludes %v, which programs that import it do not see",
			mod.Replace, mod.Exclude)
	}
}

// testsOfRequirements are modules that no program links: go mod tidy keeps their sums for the tests
// of the requirements.
var testsOfRequirements = []string{
	"github.com/bsm/ginkgo/v2", "github.com/bsm/gomega", "github.com/klauspost/cpuid/v2",
	"github.com/stretchr/testify", "github.com/zeebo/xxh3", "go.yaml.in/yaml/v3",
}

// A program that limits in Redis inherits go-redis and the breaker, and nothing else.
func TestProgramInheritsLittle(t *testing.T) {
	library, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": `package main

import (
	_ "github.com/headgate/headgate"
	_ "github.com/headgate/headgate/redisstore"
)

func main() {}
`,
		"go.mod": "module program\n\nrequire github.com/headgate/headgate v0.0.0\n\n" +
			"replace github.com/headgate/headgate => " + strconv.Quote(library) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "-C", dir, "mod", "tidy")
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		path, _, _ := strings.Cut(line, " ")
		if requirements[path] == "" && !slices.Contains(testsOfRequirements, path) {
			t.Errorf("go.sum of a program has %s", path)
		}
	}
	if !strings.Contains(string(sums), "github.com/redis/go-redis/v9 ") {
		t.Error("go.sum has no go-redis: this shows nothing")
	}
}

// Arrows point inward: only what speaks to Redis links a client of it, and programs.
func TestOnlyWhatSpeaksToRedisLinksItsClient(t *testing.T) {
	const self = "github.com/headgate/headgate"
	speaks := []string{"/redisstore", "/ratelimiter", "/internal/", "/examples/"}
	for _, line := range output(t, "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...") {
		path, deps, _ := strings.Cut(line, " ")
		inside := strings.TrimPrefix(path, self)
		if slices.ContainsFunc(speaks,
			func(s string) bool { return strings.HasPrefix(inside, s) }) {
			continue
		}
		for dep := range strings.SplitSeq(deps, " ") {
			if strings.HasPrefix(dep, "github.com/redis/") || dep == self+"/redisstore" {
				t.Errorf("%s links %s: only cmd chooses a store", path, dep)
			}
			if strings.HasPrefix(dep, self+"/cmd") {
				t.Errorf("%s links %s: arrows point inward", path, dep)
			}
		}
	}
}

// The program that only reads logs compiles soon: it links no server and no client of Redis.
func TestLogsLinkLittle(t *testing.T) {
	deps := strings.Join(output(t, "-C", "cmd/headgate", "list", "-deps", "./logs"), "\n")
	for _, host := range []string{
		"github.com/redis/", "google.golang.org/", "go.opentelemetry.io/", "github.com/envoyproxy/",
		"github.com/prometheus/", "go.yaml.in/",
	} {
		if strings.Contains(deps, host) {
			t.Errorf("cmd/headgate/logs links a package of %s", host)
		}
	}
	if !strings.Contains(deps, "/internal/replay") {
		t.Error("cmd/headgate/logs does not link replay: this shows nothing")
	}
}
