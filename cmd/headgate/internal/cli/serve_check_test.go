//go:build unix

package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// What a rules file says is printed in one line for each rule, with escapes: in the log of a
// workflow, a line of the file would else be a command of GitHub Actions.
func TestCheckEscapes(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "a\n::error::x.yaml"), `rules:
  - name: a
    match: {path: "re:^/a\n::error::x\r\n\x60\x1b\\[31m"}
    key: "const:x\n::stop-commands::y##[add-mask]z"
    limits: [5/m, 5/m]
overrides:
  - {rule: a, key: "*\n::add-mask::k", ban: true, until: 2020-01-01T00:00:00Z}
domains:
  - {domain: "d\n::error::d", descriptors: [{key: "k\n##[error]", rate_limit: {unit: day, requests_per_unit: 1}}]}
`)
	for _, text := range []string{"", "rules: [{name: \"a\\n::error::\\e[31m##[error]\", limits: 1/s}]"} {
		var stdout, stderr bytes.Buffer
		if text != "" {
			file = writeFile(t, filepath.Join(t.TempDir(), "wrong.yaml"), text)
		}
		code := exec(t.Context(), []string{"serve", "--check", file}, nil, &stdout, &stderr)
		out := stdout.String() + stderr.String()
		if (code == command.ExitAllowed) != (text == "") {
			t.Errorf("exit code %d: %s", code, out)
		}
		for line := range strings.Lines(out) {
			plain := strings.TrimSuffix(line, "\n")
			if command.Printable(plain) != plain || strings.HasPrefix(strings.TrimSpace(plain), "::") ||
				strings.Contains(plain, "##[") {
				t.Errorf("printed %q", line)
			}
		}
	}
}

// A signal ends --check, even while a file cannot be read, as on a network drive that hangs.
func TestInterruptCheck(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), "rules: [{name: a, limits: 1/s}]")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr bytes.Buffer
	code := exec(ctx, []string{"serve", "--check", file}, nil, &stdout, &stderr)
	if code != command.ExitInterrupted || stdout.Len() > 0 {
		t.Errorf("%d %s%s", code, &stdout, &stderr)
	}
}
