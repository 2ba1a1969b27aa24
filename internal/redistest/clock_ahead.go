package redistest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// clock moves the clock of the program that it is loaded into. (libfaketime would do,
// but the allocator of Redis asks for the time before it is ready, and it gives up.)
//
//go:embed preload/clock.c
var clock []byte

// StartAhead is [Start] for a server whose clock is ahead of this machine's, or behind
// it if ahead is negative. It takes Linux and a C compiler.
func StartAhead(tb testing.TB, ahead time.Duration, args ...string) *Server {
	tb.Helper()
	s, err := runKind(tb.Context(), kind{args: args, ahead: ahead})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// clockAhead gives the environment in which a program's clock is ahead. What that takes
// is made in dir.
func clockAhead(ctx context.Context, dir string, ahead time.Duration) ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("redistest: only on Linux can a server have a clock of its own")
	}
	library := filepath.Join(dir, "clock.so")
	cmd := exec.CommandContext(ctx, compiler(), "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o",
		library)
	cmd.Stdin = bytes.NewReader(clock)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf(
			"redistest: a clock takes a C compiler, which make deps installs: %w\n%s", err, out)
	}
	return []string{"LD_PRELOAD=" + library, "REDISTEST_AHEAD=" +
		strconv.FormatInt(ahead.Microseconds(), 10)}, nil
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return "cc"
}
