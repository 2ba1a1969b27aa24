//go:build gateways

package gateways

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block of code whose first line is a comment with a name is the file of that name.
var block = regexp.MustCompile("(?ms)^( *)```\\w+\n *(?:#|--) ([\\w.-]+)\n(.*?)^ *```$")

var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// files returns the files on a page.
func files(t *testing.T, page string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, m := range block.FindAllStringSubmatch(read(t, page), -1) {
		found[m[2]] = strings.ReplaceAll(m[3], "\n"+m[1], "\n")
	}
	return found
}

// commands returns the blocks of shell commands on a page.
func commands(t *testing.T, page string) []string {
	t.Helper()
	var found []string
	for _, m := range shell.FindAllStringSubmatch(read(t, page), -1) {
		found = append(found, m[1])
	}
	return found
}

func read(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs/gateways", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// edit replaces old, which must be in text.
func edit(t *testing.T, text, old, by string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in:\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, by)
}
