package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs each headgate command of the README and compares its output with
// what stands there.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sessions := regexp.MustCompile("(?s)```console\n\\$ go run ./cmd/headgate (.*?)\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(sessions) < 2 {
		t.Fatalf("the README has %d sessions; want at least 2", len(sessions))
	}
	for _, session := range sessions {
		var out, errors bytes.Buffer
		code := exec(t.Context(), words(session[1]), strings.NewReader(""), &out, &errors)
		if code != 0 || out.String() != session[2] {
			t.Errorf("headgate %s: exit %d\n%s%s\nthe README says\n%s", session[1], code, out.String(), errors.String(), session[2])
		}
	}
}

// words parts a command line, in which double quotes hold words together.
func words(line string) []string {
	var all []string
	for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		all = append(all, strings.Trim(word, `"`))
	}
	return all
}
