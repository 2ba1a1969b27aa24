package logs

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// A verb or a flag that only the other program has is refused with its name.
func TestOtherVerbs(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"replay", "--config", "a.yaml"}} {
		var text strings.Builder
		code := command.Run(t.Context(), args, newRoot, strings.NewReader(""), &text, &text)
		if code != command.ExitUsage || !strings.Contains(text.String(), "; ./cmd/headgate has all") {
			t.Errorf("%v: %d %s", args, code, text.String())
		}
	}
}
