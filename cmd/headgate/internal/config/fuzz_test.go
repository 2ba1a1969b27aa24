package config

import (
	"regexp"
	"strings"
	"testing"
)

var faultLine = regexp.MustCompile(`^f\.yaml:[1-9][0-9]*: .`)

// FuzzParse holds that no text of a file panics, that errors have their file and line, and that
// what is accepted can be used and reported.
func FuzzParse(f *testing.F) {
	for _, text := range append(files(f, "wrong.txt"), files(f, "right.txt")...) {
		f.Add(text)
	}
	f.Add(whole)
	f.Add("a: &a [1, 2]\nb: &b [*a, *a]\nrules: [*b, *b]\n<<: {store: memory}\n")
	f.Add("rules:\n  - &r {name: a, limits: 5/m}\n  - <<: *r\n    name: b\n")
	f.Add("domain: d\ndescriptors:\n  - &k {key: k, limit: 5/m}\n  - {<<: *k, value: v}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f.yaml", []byte(text), Options{Env: lookup})
		if err == nil {
			_ = c.Report()
			for _, w := range c.Warnings {
				if !faultLine.MatchString(w) {
					t.Errorf("a warning without its place: %q", w)
				}
			}
			return
		}
		for line := range strings.Lines(err.Error()) {
			if !faultLine.MatchString(line) {
				t.Errorf("an error without its place: %q in %q", line, err)
			}
		}
	})
}
