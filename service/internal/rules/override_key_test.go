package rules

import "testing"

func TestCheckKey(t *testing.T) {
	for _, c := range []struct {
		parts []string
		key   string
		want  string // empty: valid
	}{
		{nil, "all", ""},
		{nil, "*", ""},
		{nil, "ip:192.0.2.1", `"ip:192.0.2.1" is not a key of rule "r"; want "all"`},
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
			`"ip:192.0.2.0/24" is not a key of rule "r"; want "ip:192.0.2.0", as the rule counts this address`,
		},
		{
			[]string{"ip"}, "ip:x",
			`"ip:x" is not a key of rule "r"; want "ip:" and an address, or a pattern with *`,
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
