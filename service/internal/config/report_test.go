package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"rules: [{name: a, limits: [5/m, 100/d]}]", nil},
		{"rules: [{name: a, limits: [5/m, 1000/m]}]", []string{"f:1: rules[0]: limit 1000/m never denies what 5/m grants"}},
		{"rules: [{name: a, limits: [5/m, 5/m]}]", []string{"f:1: rules[0]: limit 5/m never denies what 5/m grants"}},
		{"rules: [{name: a, limits: [5/m burst 9, 5/m]}]", []string{"f:1: rules[0]: limit 5/m burst 9 never denies what 5/m grants"}},
		{"rules: [{name: a, limits: [9/m, 5/m fixed-window]}]", nil},
		{"rules: [{name: a, limits: [9/h fixed-window, 5/m fixed-window]}]", nil},
		{"rules: [{name: a, limits: [9/m sliding-log, 5/m sliding-log]}]", []string{"f:1: rules[0]: limit 9/m sliding-log never denies what 5/m sliding-log grants"}},
		{"rules: [{name: a, limits: [9/m stepped burst 20, 10/m stepped]}]", nil},
		{"rules:\n  - {name: a, limits: [5/m, 9/h], cost: 6}", []string{"f:2: rules[0]: a cost of 6 never fits limit 5/m: every request is denied"}},
		{
			"rules: [{name: a, key: ip, limits: 5/m}]\noverrides:\n" +
				"  - {rule: a, key: 'ip:10.*', ban: true}\n  - {rule: a, key: 'ip:10.0.*', limits: 9/m}\n" +
				"  - {rule: a, key: 'ip:1*', limits: 9/m, until: 2027-01-01T00:00:00Z}\n  - {rule: a, key: 'ip:192.0.2.1', ban: true}\n" +
				"  - {rule: a, key: 'ip:192.0.2.1', limits: 9/m}\n",
			[]string{
				`f:4: overrides[1]: "ip:10.0.*" is never used: "ip:10.*" at f:3 matches first`,
				`f:7: overrides[4]: "ip:192.0.2.1" is never used: "ip:192.0.2.1" at f:6 matches first`,
			},
		},
		{"listen:\n  http: :80", []string{"f:2: listen.http: anyone who reaches :80 can charge and reset keys; want api.tokens, or an address of this machine alone"}},
		{"listen: {http: ':80'}\napi: {tokens: [t]}", nil},
		{"listen: {http: '[::1]:80', grpc: ':81'}", nil},
		{"listen: {http: 'off'}", nil},
		{
			"trust: [0.0.0.0/0, 10.0.0.0/8]",
			[]string{"f:1: trust[0]: 0.0.0.0/0 is every address: each client chooses its own by X-Forwarded-For"},
		},
		{
			"domain: d\ndescriptors:\n  - {key: user}\n  - {key: user_id, limit: 5/m}\n",
			[]string{"f:4: "},
		},
		{"domain: d\n---\ndomain: e\n", []string{"f:2: only the first document is read"}},
	} {
		config, err := Parse("f", []byte(c.text), Options{})
		if err != nil {
			t.Errorf("%s\n%v", c.text, err)
		} else if !slices.EqualFunc(config.Warnings, c.want, func(got, want string) bool {
			return got == want || len(want) < 6 && strings.HasPrefix(got, want)
		}) {
			t.Errorf("%s\ngot  %q\nwant %q", c.text, config.Warnings, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"*", "", true},
		{"*", "a*", true},
		{"a*", "a", true},
		{"a*", "ab*", true},
		{"ab*", "a*", false},
		{"a*c", "abc", true},
		{"a*c", "ab*", false},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"aa*aa", "aaa", false},
		{"*a*a*", "a", false},
	} {
		if got := covers(c.pattern, c.text); got != c.want {
			t.Errorf("covers(%q, %q) = %t", c.pattern, c.text, got)
		}
	}
}

func TestCheck(t *testing.T) {
	at := tree(t, map[string]string{
		"rules.yaml": `
rules:
  - {name: all, limits: 1000/s}
  - {name: login, match: {method: [POST, PUT], host: x.org, path: /login}, key: [ip/48, "header:x-key"], limits: [5/m, 900/m], mode: shadow, cost: "response:used"}
  - {name: work, key: ip, permits: 3}
overrides:
  - {rule: all, key: all, limits: 9/s burst 20, until: 2027-01-01T01:00:00+01:00}
  - {rule: work, key: "ip:192.0.2.*", ban: true}
`,
		"edge.yaml": "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 7}}]\n",
	})
	got, err := Check([]string{at}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `file edge.yaml
file rules.yaml
rule all: 1000/s for all together
rule login: 5/m, 900/m for each ip/48, header:X-Key of POST or PUT x.org /login, cost response:Used, shadow
rule work: 3 permits for each ip
override of all for all: 9/s burst 20 until 2027-01-01T00:00:00Z
override of work for ip:192.0.2.*: ban
domain d.k: unit=DAY requests_per_unit=7, shadow_mode: false, quota_mode: false
warning: rules.yaml:4: rules[1]: limit 900/m never denies what 5/m grants
valid: 2 files, 3 rules, 2 overrides, 1 domain, 1 warning
`
	if got = strings.ReplaceAll(got, at+"/", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Check([]string{filepath.Join(at, "none.yaml")}, Options{}); err == nil {
		t.Error("no error without a file")
	}
}
