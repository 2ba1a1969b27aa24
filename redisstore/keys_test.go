package redisstore

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// FuzzKey holds the names of keys to two promises: no two keys and limits share
// one, and the hash tag that a Cluster reads is there and the same for all limits
// of a key.
func FuzzKey(f *testing.F) {
	for _, key := range []string{"", "{", "}", "%", "a}b", "{}", "a:b", "\x00\xff"} {
		f.Add(key, "a:b")
	}
	s := &Store{prefix: DefaultPrefix}
	plain, named := headgate.FixedWindow(1, 1e9).ID(), headgate.FixedWindow(1, 1e9).Named("x").ID()
	f.Fuzz(func(t *testing.T, a, b string) {
		if (s.key(a, plain) == s.key(b, plain)) != (a == b) || s.key(a, plain) == s.key(b, named) {
			t.Errorf("%q and %q collide", a, b)
		}
		_, rest, _ := strings.Cut(s.key(a, plain), "{")
		tag, _, found := strings.Cut(rest, "}")
		_, rest, _ = strings.Cut(s.key(a, named), "{")
		other, _, _ := strings.Cut(rest, "}")
		if !found || tag == "" || tag != other {
			t.Errorf("%q: hash tags %q and %q", a, tag, other)
		}
	})
}
