//go:build upstream

package integration

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/e2e/upstream"
)

// names are upstream's integration tests except the three that need memcached, which Headgate
// has no store for.
var names = flag.String("names", "TestBasicConfig TestShareThreshold TestBasicAuthConfig "+
	"TestBasicConfig_ExtraTags TestBasicReloadConfig TestXdsProviderBasicConfig "+
	"TestXdsProviderBasicConfigReload TestReloadGRPCServerCerts Test_mTLS TestBasicTLSConfig "+
	"TestBasicAuthConfigWithRedisCluster TestBasicAuthConfigWithRedisSentinel",
	"upstream's tests to run")

// TestUpstream runs upstream's tests. Only the package that would run upstream's server in the
// test is replaced, by testdata/runner.
func TestUpstream(t *testing.T) {
	work := t.TempDir()
	m := &machine{t: t, dir: work, path: filepath.Join(work, "bin")}
	m.programs()
	m.redises()
	cert := m.tunnels()

	module := copyModule(t, filepath.Join(work, "ratelimit"))
	environment := append(os.Environ(), "GOWORK=off", "PATH="+m.path+":"+os.Getenv("PATH"),
		"HEADGATE_BIN="+filepath.Join(m.path, "ratelimit"), "PROJECT_DIR="+work, "SSL_CERT_FILE="+cert)
	left := strings.Fields(*names)
	for range 2 { // upstream's tests count in a minute, and fail if it ends under way
		cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "integration", "-count", "1",
			"-v", "-timeout", "9m", "-run", "^("+strings.Join(left, "|")+")$", "./test/integration")
		cmd.Dir, cmd.Env = module, environment
		out, err := cmd.CombinedOutput()
		left = slices.DeleteFunc(left, func(name string) bool {
			return strings.Contains(string(out), "\n--- PASS: "+name+" ")
		})
		if err == nil && len(left) == 0 {
			return
		} else if len(left) == 0 {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("did not pass: %q: %v\n%s", left, err, out)
	}
	t.Fail()
}

// copyModule copies upstream's module to dir and replaces its package runner.
func copyModule(t *testing.T, dir string) string {
	t.Helper()
	module, err := upstream.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	shim, err := os.ReadFile("testdata/runner/runner.go")
	if err != nil {
		t.Fatal(err)
	}
	runner := filepath.Join(dir, "src/service_cmd/runner/runner.go")
	err = os.WriteFile(runner, shim, 0o600) //nolint:gosec // below the test's own directory
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// programs puts into m.path the headgate of this tree under the name ratelimit, and the Redis
// programs under the names that upstream's tests use.
func (m *machine) programs() {
	m.t.Helper()
	if err := os.MkdirAll(m.path, 0o755); err != nil {
		m.t.Fatal(err)
	}
	headgate := filepath.Join(m.path, "headgate")
	build := exec.CommandContext(m.t.Context(), "go", "build", "-o", headgate, "../../..")
	if out, err := build.CombinedOutput(); err != nil {
		m.t.Fatalf("go build: %v\n%s", err, out)
	}
	m.link(headgate, "ratelimit")
	own := os.Getenv("HEADGATE_REDIS_SERVER")
	m.link(m.find(own, "redis-server", "valkey-server", "redis-check-rdb"), "redis-server")
	m.link(m.find("redis-cli", "valkey-cli"), "redis-cli")
}

func (m *machine) link(program, name string) {
	m.t.Helper()
	if err := os.Symlink(program, filepath.Join(m.path, name)); err != nil {
		m.t.Fatal(err)
	}
}

// find returns the path of the first program that is installed.
func (m *machine) find(names ...string) string {
	m.t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	m.t.Fatalf("none of %q is installed; run make upstream", names)
	return ""
}
