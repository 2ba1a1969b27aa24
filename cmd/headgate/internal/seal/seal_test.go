package seal

import (
	"strings"
	"testing"
)

func TestBox(t *testing.T) {
	a, b := New("0123456789abcdef"), New("0123456789abcdeX")
	for _, text := range []string{"x", "user:42", strings.Repeat("user:42 ", 1000)} {
		sealed := a.Seal(text)
		if strings.Contains(sealed, "user") || sealed == text {
			t.Errorf("%q is sealed as %q", text, sealed)
		}
		if sealed != New("0123456789abcdef").Seal(text) {
			t.Errorf("%q is sealed in two ways", text)
		}
		if got, err := a.Open(sealed); got != text || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		changed := []byte(sealed)
		changed[len(changed)-1] ^= 1
		for _, wrong := range []string{string(changed), text, sealed[:12], sealed[:len(sealed)-1]} {
			if got, err := a.Open(wrong); got != "" || err == nil {
				t.Errorf("opened %q as %q", wrong, got)
			}
		}
		if got, err := b.Open(sealed); got != "" || err == nil {
			t.Errorf("another secret opened it as %q", got)
		}
	}
	if a.Mark() == b.Mark() || len(a.Mark()) != 9 || a.Seal("") != "" {
		t.Errorf("marks %q, %q; nothing is sealed as %q", a.Mark(), b.Mark(), a.Seal(""))
	}
	none := New("")
	if text, err := none.Open(none.Seal("x")); none != nil || text != "x" || err != nil || none.Mark() != "" {
		t.Error("without a secret, texts do not stay as they are")
	}
}
