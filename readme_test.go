package headgate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packages are what the snippets of the README may import, each with something that uses it.
var packages = [][2]string{
	{"context", "context.Context"},
	{"log", "log.Logger"},
	{"net/http", "http.Handler"},
	{"net/netip", "netip.Prefix"},
	{"time", "time.Time"},
	{"github.com/headgate/headgate", "headgate.Limit"},
	{"github.com/headgate/headgate/concurrency", "concurrency.Limiter"},
	{"github.com/headgate/headgate/denycache", "denycache.Store"},
	{"github.com/headgate/headgate/fallback", "fallback.Options"},
	{"github.com/headgate/headgate/gate", "gate.Waiter"},
	{"github.com/headgate/headgate/httplimit", "httplimit.Options"},
	{"github.com/headgate/headgate/lease", "lease.Options"},
	{"github.com/headgate/headgate/observe", "observe.Event"},
	{"github.com/headgate/headgate/ratelimiter", "ratelimiter.TokenBucketConfig"},
	{"github.com/headgate/headgate/redisstore", "redisstore.Store"},
	{"github.com/redis/go-redis/v9", "redis.Client"},
}

// given is what the snippets use and do not declare.
const given = `
var (
	_ = errors.Is
	_ = slices.Values[[]int]
	_ = strings.HasPrefix

	urls       []string
	fetch      func(context.Context, string) error
	handler    http.Handler
	limiter    *headgate.Limiter
	store      headgate.Store
	redisStore *redisstore.Store
)
`

// TestReadmeCompiles builds the Go snippets of the README, each as a function of its own.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatchIndex(readme, -1)
	if len(snippets) < 4 {
		t.Fatalf("the README has %d Go snippets; want at least 4", len(snippets))
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program(string(readme), snippets)), 0o600); err != nil {
		t.Fatal(err)
	}
	// A snippet may leave its results to the reader; nothing else may be wrong.
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, file)
	out, _ := build.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "declared and not used") {
			t.Error(line)
		}
	}
}

// program is the snippets as one program. Its errors name the lines of the README.
func program(readme string, snippets [][]int) string {
	var text strings.Builder
	text.WriteString("package main\n\nimport (\n\t\"errors\"\n\t\"slices\"\n\t\"strings\"\n")
	for _, p := range packages {
		fmt.Fprintf(&text, "\t%q\n", p[0])
	}
	text.WriteString(")\n\nvar (\n")
	for _, p := range packages {
		fmt.Fprintf(&text, "\t_ %s\n", p[1])
	}
	text.WriteString(")\n" + given + "\nfunc main() {}\n")
	for i, s := range snippets {
		line := 1 + strings.Count(readme[:s[2]], "\n")
		fmt.Fprintf(&text, "\nfunc snippet%d(ctx context.Context) {\n//line README.md:%d\n%s}\n", i, line, readme[s[2]:s[3]])
	}
	return text.String()
}
