package command

import (
	"strings"
	"testing"
)

func TestPrintHelp(t *testing.T) {
	const text = "one two\nthree four\n  a   first second\n  bb  third\nlast"
	want := "one two\nthree four\n  a   first\n      second\n  bb  third\nlast\n"
	var out strings.Builder
	if printHelp(&out, text, 12); out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
