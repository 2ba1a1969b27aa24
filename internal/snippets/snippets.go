// Package snippets finds the snippets of the documentation in code that tests run.
package snippets

import (
	"os"
	"strings"
	"testing"
)

// Check fails t unless each snippet of page that begins with ```go TAG is a part of file, at some
// indentation.
func Check(t testing.TB, page, tag, file string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```go "+tag+"\n")
	if len(parts) == 1 {
		t.Fatalf("%s has no snippet for %s", page, tag)
	}
	for _, part := range parts[1:] {
		snippet, _, _ := strings.Cut(part, "```")
		if !strings.Contains(flat(string(code)), flat(snippet)) {
			t.Errorf("%s does not run this snippet of %s:\n%s", file, page, snippet)
		}
	}
}

// flat returns text without indentation.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
