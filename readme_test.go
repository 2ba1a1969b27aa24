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

// TestDocumentationCompiles builds the Go snippets of the README and of docs, each in a function
// of its own.
func TestDocumentationCompiles(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile("testdata/snippets.txt")
	if err != nil {
		t.Fatal(err)
	}
	program, snippets := string(head), 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatchIndex(
			text, -1) {
			line := strings.Count(string(text[:at[2]]), "\n") + 1
			program += fmt.Sprintf("\nfunc _(ctx context.Context) {\n//line %s:%d\n%s}\n", page,
				line, text[at[2]:at[3]])
			snippets++
		}
	}
	if snippets < 10 {
		t.Fatalf("the documentation has %d Go snippets; want at least 10", snippets)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	err = os.WriteFile(file, []byte(program), 0o600) //nolint:gosec // a file of this test
	if err != nil {
		t.Fatal(err)
	}
	// A snippet may leave its results to the reader; nothing else may be wrong.
	out, _ := exec.CommandContext(
		t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, file).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "declared and not used") {
			t.Error(line)
		}
	}
}
