package storeurl

import (
	"strings"
	"testing"
)

// FuzzOpen: no URL panics, and no error or name has its password.
func FuzzOpen(f *testing.F) {
	for _, url := range []string{
		"memory:", "redis://u:secretsecret@h:1/0", "rediss://:secretsecret@h", "redis+cluster://a:1,b:2",
		"redis+sentinel://h:1/name/0?x=y", "redis://h:1?read_timeout=1s", "redis://\xff", "redis://%zz",
		"redis://[::1", "unix:/x", "REDIS://h", "redis://h/9999999999999", "redis+cluster://", "redis://h?db=\x00",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		s, err := Open(url)
		if err == nil {
			defer s.Close()
		}
		if scheme, rest, found := strings.Cut(url, "://"); found && strings.HasPrefix(rest, "u:secretsecret@") {
			if err != nil && strings.Contains(err.Error(), "secretsecret") && !strings.Contains(rest[15:]+scheme, "secret") {
				t.Errorf("the error has the password: %v", err)
			}
			if err == nil && strings.Contains(s.Name, "secretsecret") && !strings.Contains(rest[15:], "secret") {
				t.Errorf("the name has the password: %s", s.Name)
			}
		}
	})
}
