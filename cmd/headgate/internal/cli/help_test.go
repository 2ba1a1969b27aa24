package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// Help has at most 80 columns, or as many as the terminal has.
func TestHelpFitsTheTerminal(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "60": 60, "200": 80} {
		t.Setenv("COLUMNS", columns)
		for _, verb := range append(verbs(), "help", "limits", "") {
			var out, stderr bytes.Buffer
			args := strings.Fields(verb + " --help")
			if code := exec(t.Context(), args, nil, &out, &stderr); code != 0 || stderr.Len() > 0 {
				t.Fatalf("%s: exit %d, %s", verb, code, stderr.String())
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > want {
					t.Errorf("%s in %d columns: %d: %s", verb, want, n, line)
				}
			}
		}
	}
}

// The help of limits, which is no verb, has no usage.
func TestHelpOfLimitsHasNoUsage(t *testing.T) {
	var out, stderr bytes.Buffer
	exec(t.Context(), []string{"help", "limits"}, nil, &out, &stderr)
	if text := out.String(); strings.Contains(text, "Usage:") || strings.Contains(text, "--help") {
		t.Errorf("the help ends with %q", text[max(0, len(text)-200):])
	}
}

// Examples are not folded, so that they can be copied.
func TestExamplesFit(t *testing.T) {
	for _, cmd := range append(newRoot(nil).Commands(), newRoot(nil)) {
		for line := range strings.Lines(cmd.Example) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", cmd.Name(), n, line)
			}
		}
	}
}

// verbs are the names of the verbs.
func verbs() (names []string) {
	for _, cmd := range newRoot(nil).Commands() {
		if cmd.Runnable() {
			names = append(names, cmd.Name())
		}
	}
	return names
}
