package rules

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
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
		{[]string{"ip"}, "192.0.2.1", `"192.0.2.1" is not a key of rule "r"; want one such as "ip:..."`},
		{[]string{"ip"}, "192.0.2.*", `"192.0.2.*" is not a key of rule "r"; want one such as "ip:..."`},
		{
			[]string{"ip"}, "ip:2001:db8::1",
			`"ip:2001:db8::1" is not a key of rule "r"; ` +
				`want "ip:2001:db8::/64", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:192.0.2.0/24",
			`"ip:192.0.2.0/24" is not a key of rule "r"; want a pattern such as "ip:192.0.2.*"`,
		},
		{
			[]string{"ip"}, "ip:10.1.2.3/8",
			`"ip:10.1.2.3/8" is not a key of rule "r"; want a pattern such as "ip:10.*"`,
		},
		{
			[]string{"ip"}, "ip:10.0.0.0/12",
			`"ip:10.0.0.0/12" is not a key of rule "r"; ` +
				`want one override for each key in it, or patterns with *`,
		},
		{
			[]string{"ip"}, "ip:192.0.2.1/32",
			`"ip:192.0.2.1/32" is not a key of rule "r"; want "ip:192.0.2.1", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:2001:db8:1::/48",
			`"ip:2001:db8:1::/48" is not a key of rule "r"; want a pattern such as "ip:2001:db8:1:*"`,
		},
		{
			[]string{"ip"}, "ip:2001:db8::/48", // 2001:db8::/64 would not match 2001:db8:0:*
			`"ip:2001:db8::/48" is not a key of rule "r"; ` +
				`want one override for each key in it, or patterns with *`,
		},
		{
			[]string{"ip/128"}, "ip:2001:db8:0:0:1::/80", // nor 2001:db8::1:0:0:5 2001:db8:0:0:1:*
			`"ip:2001:db8:0:0:1::/80" is not a key of rule "r"; ` +
				`want one override for each key in it, or patterns with *`,
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

// TestPatternOfNetwork: a pattern that an error proposes matches the keys of the addresses in the
// network, and no others.
func TestPatternOfNetwork(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	proposed := 0
	for range 20_000 {
		part := KeyPart{Source: "ip", Bits: []int{0, 48, 56, 128}[random.IntN(4)]}
		a, b := randomAddress(random), randomAddress(random)
		network := netip.PrefixFrom(a, random.IntN(a.BitLen()+1))
		pattern, found := strings.CutPrefix(part.check(network.String(), false),
			`a pattern such as "ip:`)
		if !found {
			continue
		}
		proposed++
		beginning := strings.TrimSuffix(pattern, `*"`)
		for _, at := range []netip.Addr{a, b, network.Masked().Addr()} {
			key := string(appendAddress(nil, at, part.Bits))
			if strings.HasPrefix(key, beginning) != network.Contains(at) {
				t.Errorf("%s proposes %s for %s, whose key is %s", network, pattern, at, key)
			}
		}
	}
	if proposed < 1000 {
		t.Errorf("only %d patterns", proposed)
	}
}

// randomAddress returns an address that has few different groups, many of them 0.
func randomAddress(random *rand.Rand) netip.Addr {
	b := make([]byte, []int{4, 16}[random.IntN(2)])
	for i := range b {
		b[i] = byte(random.IntN(2) * random.IntN(3))
	}
	at, _ := netip.AddrFromSlice(b)
	return at
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
