package report

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

var limitTexts = []string{
	"10/m", "1/s", "60/h burst 5", "1252/h", "100/d burst 1000", "3/7s burst 2", "1.5/s", "5/15m",
	"186/10s", "1/250us", "7/1500ms stepped", "10/m burst 25 stepped", "5/15m fixed-window",
	"60/m sliding-log", "60/90m sliding-window", "api=100/m burst 20", "a.B-c_9=5/m sliding-log",
}

func parsed(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A program of the Go expressions makes the same limits.
func TestGo(t *testing.T) {
	t.Parallel()
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n\"fmt\"\n\"time\"\n\"github.com/headgate/headgate\"\n)\n\n" +
		"const _ = time.Second\n\nfunc main() {\n")
	var want strings.Builder
	for _, text := range limitTexts {
		l := parsed(t, text)
		texts := newLimit("careful", l, replay.ByIP)
		if again := parsed(t, texts.Limit); again != l {
			t.Errorf("%s is shown as %s", l, again)
		}
		fmt.Fprintf(&program, "\tfmt.Println(%s)\n", texts.Go)
		want.WriteString(l.String() + "\n")
	}
	program.WriteString("}\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "run", file)
	out, err := run.CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want.String())
	}
}
