package spelling_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/spelling"
)

func TestLike(t *testing.T) {
	names := []string{"key", "limits", "label_keys", "mode"}
	for word, want := range map[string][]string{
		"keys": {"key"}, "Limit": {"limits"}, "labelkeys": {"label_keys"}, "l": {"limits", "label_keys"},
		"mod": {"mode"}, "mdoe": nil, "other": nil, "": nil,
	} {
		if got := spelling.Like(word, names); !slices.Equal(got, want) {
			t.Errorf("%q is like %q, want %q", word, got, want)
		}
	}
}
