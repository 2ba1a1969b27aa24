package rules

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzKeys: every key can be named, equal values have one key, others another, and what acts on the
// key that is shown acts on the counter of its requests.
func FuzzKeys(f *testing.F) {
	for _, v := range []string{
		"", "a", "\xff", "\x80a", "\xc3\x28", "\ufffd", "\x00", "a|b", "%7C", "%FF", "sha256:00", "all",
		strings.Repeat("x", 129), strings.Repeat("\xff", 128), "*", "header:", "/../a", "//",
		"a%20b", "%20a", "a%09b", `""a""`, `"\"a\""`, `"%\41"`, "a X=b", "a; X=b",
	} {
		f.Add(v, v+"\xff", byte(0))
		f.Add(v, "a", byte(1))
		f.Add(v, "", byte(5))
		f.Add(v, "Scheme "+v, byte(7))
		f.Add("\xff"+v, v+"\xfe", byte(2))
	}
	client := netip.MustParseAddr("192.0.2.1")
	f.Fuzz(func(t *testing.T, a, b string, kind byte) {
		parts := [][]string{{"header:X"}, {"header:X", "header:Y"}, {"ip", "header:X"}, {"path"}, {"host"},
			{"cookie:X"}, {"method", "path", "host"},
			{"cookie:X", "header:Authorization", "ip"}}[int(kind)%8]
		request := func(x, y string) *Request {
			return &Request{Method: x, Host: x, Path: x, Client: client, Header: http.Header{
				"X": {x}, "Y": {y}, "Cookie": {"X=" + x}, "Authorization": {y},
			}}
		}
		q := request(a, b)
		key := keyOf(t, q, parts...)
		if !utf8.ValidString(key) || len(key) > len(parts)*(3*128+10) {
			t.Fatalf("the key is %q", key)
		}
		text, err := json.Marshal(key)
		var read string
		if err != nil || json.Unmarshal(text, &read) != nil || read != key {
			t.Errorf("%q is %s in JSON", key, text)
		}
		if parts[len(parts)-1][0] == 'h' && strings.HasSuffix(parts[0], ":X") || parts[0] == "ip" {
			if other := keyOf(t, request(b, a), parts...); (other == key) != (a == b) {
				t.Errorf("%q and %q have the keys %q and %q", a, b, key, other)
			}
		}
		r := Rule{Name: "r", Limits: per(2)}
		for _, p := range parts {
			part, err := ParseKeyPart(p)
			if err != nil {
				t.Fatal(err)
			}
			r.Key = append(r.Key, part)
		}
		e := newEngine(t, Options{}, r)
		if v := decide(t, e, q); !v.Allowed || left(t, e, "r", key) != 1 {
			t.Errorf("a request of %q is not charged to it", key)
		}
		banned := newEngine(t, Options{Overrides: overrides{{Rule: "r", Key: key, Ban: true}}}, r)
		if v := decide(t, banned, q); v.Allowed {
			t.Errorf("the ban of %q has no effect", key)
		}
		if !strings.Contains(key, "*") {
			checkNamed(t, r, key)
		}
	})
}

// checkNamed checks that overrides can have the key, and patterns of its beginnings and ends.
func checkNamed(t *testing.T, r Rule, key string) {
	t.Helper()
	for i := range key {
		for _, named := range []string{key, key[:i] + "*", "*" + key[i:]} {
			if err := r.CheckKey(named); err != nil {
				t.Fatalf("an override of %q is refused: %v", named, err)
			}
		}
	}
}
