package replay

import (
	"strings"
	"testing"
)

func TestParseBy(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ip", "ip"},
		{"IP", "ip"},
		{"ip,path", "ip,path"},
		{"ip, header:X-Api-Key", "ip,header:X-Api-Key"},
		{"all", "all"},

		{"", `headgate: by is ""; want ` + byNames},
		{"foo", `headgate: by is "foo"; want ` + byNames},
		{"ip,", `headgate: by is "ip,"; want ` + byNames},
		{"header", `headgate: by is "header"; want ` + byNames},
		{"header:", `headgate: by is "header:"; want ` + byNames},
		{"header:a b", `headgate: by is "header:a b"; want ` + byNames},
		{"ip:4", `headgate: by is "ip:4"; want ` + byNames},
		{"ip,ip", `headgate: by is "ip,ip"; want each part once`},
		{"header:Referer,header:referrer", `headgate: by is "header:Referer,header:referrer"; want each part once`},
		{"ip,all", `headgate: by is "ip,all"; want "all" by itself`},
	} {
		by, err := ParseBy(c.text)
		got := by.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q is %s, want %s", c.text, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	e := entry{
		addr: []byte("198.18.0.1:4711"), method: []byte("GET"), target: []byte("/a,b?q=/c"), host: []byte("Example.COM:443"),
		headers: [][]byte{[]byte(`Mozilla\5`)},
	}
	for _, c := range []struct{ by, want string }{
		{"ip", "198.18.0.1"},
		{"path", "/a,b"}, // one part is itself
		{"method", "GET"},
		{"host", "example.com"},
		{"header:user-agent", `Mozilla\5`},
		{"all", "all"},
		{"ip,path", `198.18.0.1,/a\,b`},
		{"header:user-agent,host,method", `Mozilla\\5,example.com,GET`},
	} {
		by, err := ParseBy(c.by)
		if err != nil {
			t.Fatal(err)
		}
		k := keyer{by: by}
		if key, why := k.make(&e); string(key) != c.want || why != "" {
			t.Errorf("by %s: %s %s, want %s", c.by, key, why, c.want)
		}
		k.by = by
		if key, why := k.make(&entry{headers: make([][]byte, 1)}); c.by != "all" && (key != nil || !strings.HasPrefix(why, "no ")) {
			t.Errorf("by %s: %q %q for an empty entry", c.by, key, why)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"198.18.0.1", "198.18.0.1"},
		{"198.18.0.1:4711", "198.18.0.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"2001:DB8:1:2::1", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1]:4711", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1]", "2001:db8:1:2::/64"},
		{"::ffff:198.18.0.1", "198.18.0.1"},
		{"[::ffff:198.18.0.1]:4711", "198.18.0.1"},
		{"fe80::1%eth0", "fe80::/64"},
		{"::1", "::/64"},
		{"client.example.net", "client.example.net"},
		{"client.example.net:4711", "client.example.net"},
		{"unix:", "unix:"},
		{":::::", ":::::"},
	} {
		k := keyer{by: ByIP}
		if got, _ := k.make(&entry{addr: []byte(c.addr)}); string(got) != c.want {
			t.Errorf("%s is %s, want %s", c.addr, got, c.want)
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct{ target, want string }{
		{"/", "/"},
		{"/a?b=c", "/a"},
		{"/a#b", "/a"},
		{"/a//b", "/a//b"},
		{"http://example.com/a?b", "/a"},
		{"https://example.com", "/"},
		{"/go?to=http://example.com/", "/go"},
		{"example.com:443", "example.com:443"}, // CONNECT
		{"*", "*"},
		{"-", ""},
		{"?a", ""},
		{"", ""},
	} {
		if got := path([]byte(c.target)); string(got) != c.want {
			t.Errorf("%q has the path %q, want %q", c.target, got, c.want)
		}
	}
}

// Two different requests never share a key of several parts.
func FuzzKeysDiffer(f *testing.F) {
	f.Add("a,b", "c", "a", "b,c")
	f.Add(`a\`, `,b`, `a\\`, "b")
	by, _ := ParseBy("header:a,header:b")
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		if a1 == a2 && b1 == b2 || a1 == "" || a2 == "" || b1 == "" || b2 == "" {
			return
		}
		k := keyer{by: by}
		key, _ := k.make(&entry{headers: [][]byte{[]byte(a1), []byte(b1)}})
		first := string(key)
		if key, _ = k.make(&entry{headers: [][]byte{[]byte(a2), []byte(b2)}}); string(key) == first {
			t.Errorf("%q, %q and %q, %q share the key %q", a1, b1, a2, b2, key)
		}
	})
}
