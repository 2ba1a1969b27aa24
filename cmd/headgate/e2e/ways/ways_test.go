package ways

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../../.." // of the repository
	module = "github.com/headgate/headgate/"
)

// walkOf is the variable with the way that TestWays walks. Without it, the test compares all ways.
const walkOf = "HEADGATE_WALK"

// TestWays counts the files that requests enter, in a second build of this test that counts how
// often each block of the code runs.
func TestWays(t *testing.T) {
	if way := os.Getenv(walkOf); way != "" {
		walks[way](t)
		return
	}
	counting := filepath.Join(t.TempDir(), "counting")
	output(t, exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", counting,
		"-covermode=atomic", "-coverpkg="+module+"...",
		"-gcflags="+module+"...=-N -l", "-ldflags=-s -w")) // which is quicker to build
	named := readMap(t)
	for _, way := range slices.Sorted(maps.Keys(walks)) {
		t.Run(way, func(t *testing.T) {
			profile := filepath.Join(t.TempDir(), "profile")
			walk := exec.CommandContext(t.Context(), counting, "-test.run=^TestWays$",
				"-test.timeout=5m", "-test.coverprofile="+profile)
			walk.Env = append(walk.Environ(), walkOf+"="+way)
			output(t, walk)
			compare(t, entered(t, profile), named.files(t, way))
		})
	}
}

func output(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// compare fails for each name that is missing, and for each that is too many.
func compare(t *testing.T, entered, named map[string]bool) {
	t.Helper()
	for _, of := range []struct {
		fault       string
		files, from map[string]bool
	}{
		{"ARCHITECTURE.md does not name a file that is entered", entered, named},
		{"ARCHITECTURE.md names a file that is not entered", named, entered},
	} {
		for _, file := range slices.Sorted(maps.Keys(of.files)) {
			if !of.from[file] {
				t.Errorf("%s: %s", of.fault, file)
			}
		}
	}
	t.Logf("%d files are entered", len(entered))
}

// entered returns the files with a block that ran at least once for each request. What runs only at
// the start, at the end or in the background runs less often.
func entered(t *testing.T, profile string) map[string]bool {
	t.Helper()
	f, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := make(map[string]bool)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		block := strings.Fields(lines.Text()) // such as limit.go:50.31,52.2 1 1000
		name, _, ok := strings.Cut(block[0], ".go:")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(block[2]); err == nil && n >= requests {
			files[strings.TrimPrefix(name, module)+".go"] = true
		}
	}
	return files
}
