package wildcard

import (
	"regexp"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "ab", false},
		{"exact", "exac", false},
		{"", "", true},
		{"*", "", true}, // * is any text, the empty one too
		{"*", "a*", true},
		{"a*", "a", true},
		{"a*", "ab*", true},
		{"ab*", "a*", false},
		{"ip:192.0.2.*", "ip:192.0.2.1", true},
		{"ip:192.0.2.*", "ip:192.0.2.", true},
		{"ip:192.0.2.*", "ip:192.0.20.1", false},
		{"k_*", "k", false},
		{"k_a*", "k_b", false},
		{"k_a*b", "k_ab", true},
		{"k_a*a", "k_a", false}, // the parts do not overlap
		{"a*a", "aa", true},
		{"aa*aa", "aaa", false},
		{"*a*a*", "a", false},
		{"a*c", "ab*", false},
		{"*b*", "abc", true},
		{"*b*c", "abcbc", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"k_a*bb*b", "k_abbb", true},
		{"k_a*bb*bb", "k_abbb", false},
		{"k_**x", "k_aax", true},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.text, got)
		}
		if got := Match(c.pattern, []byte(c.text)); got != c.want {
			t.Errorf("Match(%q, %q), of bytes = %t", c.pattern, c.text, got)
		}
	}
}

// FuzzMatch compares Match with a regular expression.
func FuzzMatch(f *testing.F) {
	f.Add("a*b*c", "a-b-c")
	f.Add("*a*a", "aaa")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || !isASCII(pattern) || !isASCII(text) {
			return
		}
		all := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
		want := regexp.MustCompile(`(?s)\A` + all + `\z`).MatchString(text)
		if got := Match(pattern, text); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, text, got)
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 })
}
