package command

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// Each line of help limits begins with a limit, and all algorithms are there.
func TestHelpOfLimits(t *testing.T) {
	found := map[headgate.Algorithm]bool{}
	for line := range strings.Lines(limitsHelp) {
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), "   ")
		if text = strings.TrimSpace(text); !strings.HasPrefix(line, "  ") {
			continue
		}
		if l, err := headgate.ParseLimit(text); err != nil {
			t.Error(err)
		} else {
			found[l.Algorithm()] = true
		}
	}
	if len(found) != 6 {
		t.Errorf("%d algorithms, want 6: %v", len(found), found)
	}
}
