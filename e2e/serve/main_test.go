package serve

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// long makes the tests take minutes instead of seconds, under more load.
var long = flag.Bool("serve.long", os.Getenv("HEADGATE_SOAK") != "", "run the long form")

func TestMain(m *testing.M) {
	flag.Parse()
	logging.Disable() // of the client that finds out how many servers there are
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// binary builds headgate once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headgate-serve")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "headgate")
	build := exec.Command("go", "build", "-ldflags=-w", "-o", path, ".") // links in two thirds of the time
	build.Dir = filepath.Join("..", "..", "cmd", "headgate")
	build.Stderr = os.Stderr
	return path, build.Run()
})

// pick returns the value for the form of the tests that runs.
func pick[T any](short, inLong T) T {
	if *long {
		return inLong
	}
	return short
}

// patience bounds what has to happen.
const patience = 30 * time.Second

// until polls for what has to become true.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !met(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}
