package headgate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCompiles builds each Go snippet of the README in a function of its own.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(snippets) < 4 {
		t.Fatalf("the README has %d Go snippets; want at least 4", len(snippets))
	}
	for _, snippet := range snippets {
		program := `package main
import ("context"; "errors"; "log"; "net/http"; "net/netip"; "slices"; "strings"; "time"; "github.com/headgate/headgate"; "github.com/headgate/headgate/concurrency"; "github.com/headgate/headgate/denycache"; "github.com/headgate/headgate/lease"; "github.com/headgate/headgate/fallback"; "github.com/headgate/headgate/gate"; "github.com/headgate/headgate/httplimit"; "github.com/headgate/headgate/observe"; "github.com/headgate/headgate/ratelimiter"; "github.com/headgate/headgate/redisstore"; "github.com/redis/go-redis/v9")
var ( _ = log.Print; _ = errors.Is; _ = strings.HasPrefix; _ = slices.Values[[]int]; _ = time.Now; urls []string; fetch func(context.Context, string) error; _ netip.Prefix; handler http.Handler; limiter *headgate.Limiter; store headgate.Store; _ httplimit.Options; _ headgate.Limit; _ concurrency.Limiter; _ ratelimiter.TokenBucketConfig; redisStore *redisstore.Store; _ redis.Client; _ fallback.Options; _ observe.Event; _ denycache.Options; _ lease.Options; _ gate.Waiter )
func main() { ctx := context.Background(); _ = ctx
` + snippet[1] + "}\n"
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil { //nolint:gosec // a file of this test
			t.Fatal(err)
		}
		// A snippet may leave its results to the reader; nothing else may be wrong.
		out, _ := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, file).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(line, "declared and not used") {
				t.Errorf("%s%s", snippet[1], line)
			}
		}
	}
}
