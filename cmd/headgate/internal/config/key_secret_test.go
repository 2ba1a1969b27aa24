package config

import (
	"strings"
	"testing"
)

// The secret of hashed keys is in no text that the server shows.
func TestKeySecretIsHidden(t *testing.T) {
	const secret = "kept-from-all-eyes" //nolint:gosec,nolintlint // of the test
	text := "rules: [{name: r, limits: 1/h}] # " + secret + "\nkey_secret: " + secret + "\n"
	c, err := Parse("f", []byte(text), Options{})
	if err != nil || c.KeySecret != secret {
		t.Fatal(c, err)
	}
	for _, shown := range []string{Shown([]byte(text)), c.Report(), c.Masked("a note with " + secret)} {
		if strings.Contains(shown, secret) {
			t.Errorf("the secret is shown in %q", shown)
		}
	}
	if want := "key_secret: Redis holds hashes instead of keys\n"; !strings.Contains(c.Report(), want) {
		t.Errorf("got %q; want %q in it", c.Report(), want)
	}
	short := "key_secret: " + secret[:15] + "\n"
	if _, err := Parse("f", []byte(short), Options{}); err == nil || strings.Contains(err.Error(), secret[:15]) {
		t.Errorf("of a short secret: %v", err)
	}
}
