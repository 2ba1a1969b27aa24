//go:build gateways

package gateways

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const root = "../.."

// headgate is the program under test.
var headgate string

func TestMain(m *testing.M) {
	os.Exit(built(m))
}

// built runs the tests with a program that it builds.
func built(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gateways")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Debian has servers in sbin, which is not in everyone's PATH.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	headgate = filepath.Join(dir, "headgate")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", headgate, "./cmd/headgate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
		return 1
	}
	return m.Run()
}
