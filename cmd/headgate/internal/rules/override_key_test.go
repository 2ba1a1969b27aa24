package rules

import (
	"net/http"
	"strings"
	"testing"
)

// What the key of a long host or of an address is can be written in an override, too.
func TestCheckKeyOfHosts(t *testing.T) {
	r := Rule{Name: "r", Key: []KeyPart{{Source: "host"}}, Limits: per(1)}
	for _, host := range []string{"[2001:db8::1]:80", "192.0.2.1:80", strings.Repeat("h", 200), "\xff"} {
		if key := keyOf(t, &Request{Host: host}, "host"); r.CheckKey(key) != nil {
			t.Errorf("%q: %v", host, r.CheckKey(key))
		}
	}
	for _, key := range []string{"host:h:80", "host:H", "host:h."} {
		if r.CheckKey(key) == nil {
			t.Errorf("%q is accepted", key)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for _, c := range []struct {
		parts []string
		key   string
		want  string // empty: valid
	}{
		{nil, "all", ""},
		{nil, "*", ""},
		{nil, "user:42", ""},
		{nil, "hash:of", ""},
		{
			nil, "hash:AAAAAAAAAAAAAAAAAAAAAA", // with hashed keys, it would replace that of the key
			`"hash:AAAAAAAAAAAAAAAAAAAAAA" is the hash of a key; want the key itself`,
		},
		{[]string{"method"}, "method:get", `"method:get" is not a key of rule "r"; want "method:GET"`},
		{[]string{"host"}, "host:A.com", `"host:A.com" is not a key of rule "r"; want "host:a.com"`},
		{[]string{"ip"}, "ip:192.0.2.1", ""},
		{[]string{"ip"}, "ip:192.0.2.*", ""},
		{[]string{"ip"}, "i*", ""},
		{[]string{"ip"}, "*.1", ""},
		{[]string{"ip"}, "ip:unknown", ""},
		{[]string{"ip"}, "ip:2001:db8::/64", ""},
		{[]string{"ip/128"}, "ip:2001:db8::1", ""},
		{[]string{"ip/48"}, "ip:2001:db8::/48", ""},
		{[]string{"ip/24/48"}, "ip:192.0.2.0/24", ""},
		{[]string{"ip/24/48"}, "ip:192.0.*", ""},
		{
			[]string{"ip/24/48"}, "ip:192.0.2.1",
			`"ip:192.0.2.1" is not a key of rule "r"; ` +
				`want "ip:192.0.2.0/24", as the rule counts this address`,
		},
		{[]string{"query:q"}, "query:a b+c", ""},
		{[]string{"query:q"}, "query:a *", ""},
		{[]string{"query:q"}, "query:a%20b", `"query:a%20b" is not a key of rule "r"; want "query:a b"`},
		{[]string{"query:q"}, "query:%41*", `"query:%41*" is not a key of rule "r"; want a pattern such as "query:A*"`},
		{[]string{"ip"}, "192.0.2.1", `"192.0.2.1" is not a key of rule "r"; want one such as "ip:..."`},
		{[]string{"ip"}, "192.0.2.*", `"192.0.2.*" is not a key of rule "r"; want one such as "ip:..."`},
		{
			[]string{"ip"}, "ip:2001:db8::1",
			`"ip:2001:db8::1" is not a key of rule "r"; ` +
				`want "ip:2001:db8::/64", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:10.1.2.3/8",
			`"ip:10.1.2.3/8" is not a key of rule "r"; want one override for each key in it, ` +
				`a pattern such as "ip:10.*", or a rule with match: {ip: 10.0.0.0/8}`,
		},
		{
			[]string{"ip"}, "ip:192.0.2.1/32",
			`"ip:192.0.2.1/32" is not a key of rule "r"; want "ip:192.0.2.1", as the rule counts this address`,
		},
		{
			[]string{"ip/24/64"}, "ip:2001:db8::/48",
			`"ip:2001:db8::/48" is not a key of rule "r"; want one override for each key in it, ` +
				`a pattern such as "ip:10.*", or a rule with match: {ip: 2001:db8::/48}`,
		},
		{
			[]string{"ip"}, "ip:2001:db8:1:2:3::/80",
			`"ip:2001:db8:1:2:3::/80" is not a key of rule "r"; ` +
				`want "ip:2001:db8:1:2::/64", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:::ffff:192.0.2.1",
			`"ip:::ffff:192.0.2.1" is not a key of rule "r"; ` +
				`want "ip:192.0.2.1", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:x",
			`"ip:x" is not a key of rule "r"; want "ip:" and an address, or a pattern with *`,
		},
		{[]string{"path"}, "path:/a/", `"path:/a/" is not a key of rule "r"; want "path:/a"`},
		{[]string{"const:x"}, "const:y", `"const:y" is not a key of rule "r"; want "const:x"`},
		{[]string{"header:Authorization"}, "header:bearer A", ""},
		{[]string{"header:Authorization"}, "header:bearer *", ""},
		{[]string{"header:Authorization"}, "header:sk-A", ""},
		{
			[]string{"header:X-Api-Key|Authorization"}, "header:Bearer  A",
			`"header:Bearer  A" is not a key of rule "r"; want "header:bearer A"`,
		},
		{
			[]string{"header:Authorization"}, "header:Bearer sk-*",
			`"header:Bearer sk-*" is not a key of rule "r"; want a pattern such as "header:bearer sk-*"`,
		},
		{[]string{"header:X-Key"}, "header:Bearer  A", ""},
		{[]string{"cookie:c"}, "cookie:a%42", `"cookie:a%42" is not a key of rule "r"; want "cookie:aB"`},
		{[]string{"cookie:c"}, "cookie:John Doe", ""}, // of John%20Doe
		{[]string{"cookie:c"}, "cookie:John Doe*", ""},
		{[]string{"cookie:c"}, "cookie: abc", ""},
		{[]string{"cookie:c"}, "cookie:a\tb", ""},
		{[]string{"cookie:c"}, `cookie:"a"`, ""}, // of ""a""
		{[]string{"cookie:c"}, `cookie:"a*`, ""},
		{[]string{"cookie:c"}, "cookie:a%42*",
			`"cookie:a%42*" is not a key of rule "r"; want a pattern such as "cookie:aB*"`},
		{[]string{"cookie:c", "ip"}, "cookie:a%7Cb|ip:*", ""},
		{[]string{"cookie:c", "ip"}, "cookie:a%2*", ""}, // the beginning of a%25
		{[]string{"ip", "header:Authorization"}, "ip:*|header:bearer sk-1", ""},
		{[]string{"ip", "path", "header:Authorization"}, "ip:*|header:bearer sk-*", ""},
		{[]string{"ip", "header:Authorization"}, "*|header:bearer sk-*", ""},
		{[]string{"ip", "header:Authorization"}, "ip:*|header:Bearer sk-1",
			`"ip:*|header:Bearer sk-1" is not a key of rule "r"; want "header:bearer sk-1"`},
		{[]string{"ip", "header:Authorization"}, "ip:*|ip:192.0.2.1",
			`"ip:*|ip:192.0.2.1" is not a key of rule "r"; want one such as "ip:...|header:..."`},
		{[]string{"ip", "path"}, "ip:*|path:/|path:/",
			`"ip:*|path:/|path:/" is not a key of rule "r"; want one such as "ip:...|path:..."`},
		{[]string{"header:Authorization"}, "header:Bearer*",
			`"header:Bearer*" is not a key of rule "r"; want a pattern such as "header:bearer*"`},
		{[]string{"header:Authorization"}, "header:SK-*", ""}, // without a scheme
		{[]string{"host"}, "host:A.*",
			`"host:A.*" is not a key of rule "r"; want a pattern such as "host:a.*"`},
		{[]string{"ip"}, "ip:2001:DB8:*",
			`"ip:2001:DB8:*" is not a key of rule "r"; want a pattern such as "ip:2001:db8:*"`},
		{[]string{"method"}, "method:p*",
			`"method:p*" is not a key of rule "r"; want a pattern such as "method:P*"`},
		{[]string{"method"}, "method:o*", ""}, // other
		{[]string{"header:X-Key", "header:Authorization"}, "header:A*|header:bearer A", ""},
		{[]string{"ip", "header:Authorization", "header:X-Key"}, "ip:*|header:Bearer A", ""},
		{[]string{"ip", "path", "host"}, "ip:*|path:/",
			`"ip:*|path:/" is not a key of rule "r"; want one such as "ip:...|path:...|host:..."`},
		{[]string{"ip", "path"}, "path:*",
			`"path:*" is not a key of rule "r"; want one such as "ip:...|path:..."`},
		{[]string{"ip", "path"}, "ip:*|path",
			`"ip:*|path" is not a key of rule "r"; want one such as "ip:...|path:..."`},
		{[]string{"const:x"}, "const:y*",
			`"const:y*" is not a key of rule "r"; want a pattern such as "const:x*"`},
		{[]string{"cookie:c", "ip"}, "cookie:a%25%7C|ip:192.0.2.1", ""},
		{[]string{"cookie:c", "ip"}, "cookie:a%42|ip:192.0.2.1",
			`"cookie:a%42|ip:192.0.2.1" is not a key of rule "r"; want "cookie:aB"`},
		{[]string{"header:X-Key"}, "header:" + strings.Repeat("x", 128), ""},
		{[]string{"header:X-Key"}, "header:sha256:" + strings.Repeat("0a", 32), ""},
		{
			[]string{"header:X-Key"}, "header:sha256:0", // as a client may send it
			`"header:sha256:0" is not a key of rule "r"; want "header:sha256:` +
				`ddadc6908c781f027b323fc063b40d6aee12e6512460962df43f57671df561cc"`,
		},
		{[]string{"header:X-Key"}, "header:a|b", ""},
		{[]string{"header:X-Key", "ip"}, "header:a|ip:192.0.2.1", ""},
		{
			[]string{"header:X-Key", "ip"}, "header:a",
			`"header:a" is not a key of rule "r"; want one such as "header:...|ip:..."`,
		},
	} {
		r := Rule{Name: "r"}
		for _, text := range c.parts {
			p, err := ParseKeyPart(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Key = append(r.Key, p)
		}
		got := ""
		if err := r.CheckKey(c.key); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v, %q:\ngot  %s\nwant %s", c.parts, c.key, got, c.want)
		}
	}
}

// A ban holds for all spellings of what it names.
func TestBansOfSpellings(t *testing.T) {
	e := newEngine(t, Options{Overrides: overrides{
		{Rule: "token", Key: "header:bearer A", Ban: true},
		{Rule: "session", Key: "cookie:A", Ban: true},
	}},
		Rule{Name: "token", Key: []KeyPart{{Source: "header", Name: "Authorization"}}, Limits: per(9)},
		Rule{Name: "session", Key: []KeyPart{{Source: "cookie", Name: "s"}}, Limits: per(9)})
	for _, fields := range []http.Header{
		{"Authorization": {"Bearer A"}}, {"Authorization": {"bEARER \t A"}},
		{"Cookie": {"s=A"}}, {"Cookie": {"x=1; s= %41"}}, {"Cookie": {`s="\101"; s=A`}},
	} {
		v, err := e.Match(&Request{Header: fields}).Decide(t.Context())
		if err != nil || v.Allowed {
			t.Errorf("%v is not banned: %v", fields, err)
		}
	}
}
