package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestReadme runs each headgate command of the README, and of the page about sizes, and compares
// its output with the text.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	var text []byte
	for _, page := range []string{"README.md", "docs/size.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	sessions := regexp.MustCompile("(?s)```console\n\\$ (?:seq 1 (\\d+) \\| )?go run ./cmd/headgate (.*?)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(sessions) < 4 {
		t.Fatalf("the documentation has %d sessions; want at least 4", len(sessions))
	}
	for _, session := range sessions {
		var out, errors bytes.Buffer
		code := exec(t.Context(), words(session[2]), strings.NewReader(seq(session[1])), &out, &errors)
		if code != 0 || out.String() != session[3] {
			t.Errorf("headgate %s: exit %d\n%s%s\nthe documentation says\n%s", session[2], code, out.String(), errors.String(), session[3])
		}
	}
}

// seq is what seq 1 LAST prints, nothing without last.
func seq(last string) string {
	n, _ := strconv.Atoi(last)
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// words parts a command line, in which double quotes hold words together.
func words(line string) []string {
	var all []string
	for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		all = append(all, strings.Trim(word, `"`))
	}
	return all
}
