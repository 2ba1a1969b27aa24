package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
)

const whole = `
store: redis://user:${PASSWORD}@127.0.0.1:6379/0
when_store_fails: share
trust: [10.0.0.0/8, 192.0.2.7]
listen: {http: ":8080", grpc: "127.0.0.1:${PORT}", debug: 127.0.0.1:6070, metrics: "[::1]:9090"}
tls: {cert: tls.crt, key: tls.key, client_ca: ca.crt}
api:
  tokens: ["${TOKEN}", another-token]
  allow_inline_limits: true
rules:
  - name: login
    match: {method: POST, path: /login, host: [API.example.com, "*.example.org"]}
    key: [ip/64, header:x-api-key]
    limits: [5/m, 100/d fixed-window]
    mode: shadow
    label_keys: true
  - name: tokens
    match: {path: /v1/chat/*}
    key: header:Authorization
    limits: 100000/h
    permits: 3
    cost: response:x-tokens-used
overrides:
  - {rule: login, key: "ip:192.0.2.*|header:*", limits: [50/m], until: 2027-01-01T00:00:00Z, note: office}
  - {rule: tokens, key: "header:bad", ban: true}
`

var environment = map[string]string{"PASSWORD": "a:b", "PORT": "8081", "TOKEN": "s3cret"}

func lookup(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

func limit(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEveryFieldIsRead(t *testing.T) {
	c, err := Parse("rules.yaml", []byte(whole), Options{Env: lookup})
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Store:          "redis://user:a:b@127.0.0.1:6379/0",
		WhenStoreFails: Share,
		Trust: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"),
		},
		Listen: Listen{
			HTTP: ":8080", GRPC: "127.0.0.1:8081", Debug: "127.0.0.1:6070", Metrics: "[::1]:9090",
		},
		TLS: TLS{Cert: "tls.crt", Key: "tls.key", ClientCA: "ca.crt"},
		API: API{Tokens: []string{"s3cret", "another-token"}, AllowInlineLimits: true},
		Rules: []rules.Rule{
			{
				Name: "login",
				Match: rules.Match{
					Methods: []string{"POST"}, Path: "/login",
					Hosts: []string{"api.example.com", "*.example.org"},
				},
				Key: []rules.KeyPart{
					{Source: "ip", Bits: 64}, {Source: "header", Name: "X-Api-Key"},
				},
				Limits: []headgate.Limit{
					limit(t, "login=5/m"), limit(t, "login.2=100/d fixed-window"),
				},
				Mode: rules.Shadow, LabelKeys: true,
			},
			{
				Name: "tokens", Match: rules.Match{Path: "/v1/chat/*"},
				Key:    []rules.KeyPart{{Source: "header", Name: "Authorization"}},
				Limits: []headgate.Limit{limit(t, "tokens=100000/h")}, Permits: 3,
				Cost: rules.Cost{ResponseHeader: "X-Tokens-Used"},
			},
		},
		Overrides: []rules.Override{
			{
				Rule: "login", Key: "ip:192.0.2.*|header:*", Limits: []headgate.Limit{limit(t, "login=50/m")},
				Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Note: "office",
			},
			{Rule: "tokens", Key: "header:bad", Ban: true},
		},
		Files: []string{"rules.yaml"},
	}
	want.Hash, want.Warnings = c.Hash, c.Warnings
	for i := range want.Overrides {
		if want.Overrides[i].Limits == nil {
			want.Overrides[i].Limits = []headgate.Limit{}
		}
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestExample(t *testing.T) {
	c, err := Example()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rules) != 1 || c.Rules[0].Name != "example" || len(c.Warnings) > 0 ||
		c.Rules[0].Limits[0] != limit(t, "example=5/m") {
		t.Errorf("the example is %+v", c)
	}
}

// TestFaults holds each fault to its line and text.
func TestFaults(t *testing.T) {
	const ok = "rules: [{name: a, limits: 5/m}]\n"
	for _, c := range []struct{ text, want string }{
		{"", "f:1: the file is empty; want rules, domains or another field"},
		{"# nothing\n", "f:1: the file is empty; want rules, domains or another field"},
		{"rules: []\n---\nrules: []\n", "f:2: a second document; want one in each file"},
		{"rules: [\n", "f:2: error loading config file: yaml: did not find expected node content; want YAML, with quotes around…"},
		{"- a\n", "f:1: is a list; want a mapping with store, when_store_fails, trust, listen, tls, api, rules, overrides, domains"},
		{
			"rule: []\n",
			"f:1: rule: unknown field; want store, when_store_fails, trust, listen, tls, api, " +
				"rules, overrides, domains; did you mean rules?",
		},
		{"store: memory\nstore: memory\n", "f:2: store: is given twice, first in line 1; want it once"},
		{"rules:\n", "f:1: rules: has no value; want one, or no field"},
		{"rules: {}\n", "f:1: rules: is a mapping; want a list"},
		{"store: 7\n", "f:1: store: is the number 7; want text"},
		{"store: ''\n", "f:1: store: is empty; want text"},
		{"store: redis://${HOST}\n", "f:1: store: ${HOST} is not set or empty; want a value in the environment"},
		{"store: redis://${HOST\n", "f:1: store: ${ begins no variable; want ${NAME}, of letters, digits and _"},
		{"when_store_fails: deny\n", `f:1: when_store_fails: "deny" is not a policy; want closed, open or share`},
		{"trust: [10.0.0.1/8]\n", `f:1: trust[0]: "10.0.0.1/8" is not a network; want one such as 10.0.0.0/8 or 192.0.2.7`},
		{"trust: []\n", "f:1: trust: is empty; want at least one entry, or no field"},
		{"listen:\n  http: 8080\n", "f:2: listen.http: is the number 8080; want text"},
		{"listen:\n  http: localhost\n", `f:2: listen.http: "localhost" is not an address; want HOST:PORT or :PORT`},
		{"tls: {cert: a}\n", "f:1: tls.cert: needs tls.key; want both"},
		{"tls: {key: a}\n", "f:1: tls.key: needs tls.cert; want both"},
		{"api: {tokens: [a b]}\n", "f:1: api.tokens[0]: has a character that no bearer token has; want letters, digits and -._~+/="},
		{"api: {tokens: [12]}\n", "f:1: api.tokens[0]: is not text; want a token in quotes, or ${NAME}"},
		{"api: {allow_inline_limits: 'yes'}\n", `f:1: api.allow_inline_limits: is "yes"; want true or false`},
		{"rules: [{limits: 5/m}]\n", "f:1: rules[0].name: is missing; want a name, which state and metrics belong to"},
		{"rules: [{name: a}]\n", "f:1: rules[0].limits: is missing; want limits such as [5/m, 100/d], or permits"},
		{
			"rules: [{name: 5/m, limits: 5/m}]\n",
			`f:1: rules[0].name: "5/m" is not a name; want …`,
		},
		{
			ok + "# twice\noverrides:\n  - {rule: b, key: all, ban: true}\n",
			`f:4: overrides[0].rule: "b" is not the name of a rule; want one that is in the files`,
		},
		{
			"rules:\n  - {name: a, limits: 5/m}\n  - {name: a, limits: 6/m}\n",
			`f:3: rules[1].name: "a" is also the name of the rule at f:2; want another`,
		},
		{
			"rules:\n  - {name: a, limits: [5/m, 9/h]}\n  - {name: a.2, limits: 6/m}\n",
			`f:3: rules[1].name: "a.2" also names a limit of the rule at f:2, which counts its limits as NAME, NAME.2 and so on; want another name`,
		},
		{
			"rules: [{name: a, limits: [5/x]}]\n",
			`f:1: rules[0].limits[0]: limit "5/x": period is "x"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w)`,
		},
		{"rules: [{name: a, limits: [b=5/m]}]\n", `f:1: rules[0].limits[0]: "b=5/m" has a name; want none: the name of the rule is used`},
		{"rules: [{name: a, limits: ['${N}/m']}]\n", `f:1: rules[0].limits[0]: "${N}/m": variables are replaced only in store, listen, tls and api.tokens; want the value itself`},
		{"rules: [{name: a, permits: 0}]\n", "f:1: rules[0].permits: is the number 0; want a whole number from 1 to 2147483647"},
		{"rules: [{name: a, permits: 65536}]\n", "f:1: rules[0].permits: 65536 is given; want 0 to 65535"},
		{"rules: [{name: nginx, permits: 5}]\n", `f:1: rules[0].name: "nginx" is taken by …`},
		{"store: etcd://host\n", `f:1: store: is "etcd://host"; want memory:, redis://…`},
		{"store: redis://:secret@host:x\n", `f:1: store: …`},
		{"rules: [{name: a, limits: 5/m, mode: on}]\n", `f:1: rules[0].mode: "on" is not a mode; want enforce, shadow or off`},
		{"rules: [{name: a, limits: 5/m, mode: true}]\n", "f:1: rules[0].mode: is the boolean true; want text"},
		{"rules: [{name: a, limits: 5/m, cost: -1}]\n", `f:1: rules[0].cost: "-1" is not a cost; want …`},
		{"rules: [{name: a, limits: 5/m, cost: 1.5}]\n", "f:1: rules[0].cost: is the number 1.5; want text"},
		{"rules: [{name: a, limits: 5/m, cost: body:x}]\n", `f:1: rules[0].cost: "body:x" is not a cost; want …`},
		{
			"rules: [{name: a, limits: 5/m, key: [user]}]\n",
			`f:1: rules[0].key[0]: "user" is not a part of a key; want …`,
		},
		{"rules: [{name: a, limits: 5/m, key: 'header:'}]\n", `f:1: rules[0].key: "header:" is not a part of a key; want …`},
		{"rules: [{name: a, limits: 5/m, key: ip/200}]\n", `f:1: rules[0].key: "ip/200" is not a part of a key; want …`},
		{"rules: [{name: a, limits: 5/m, match: {method: G T}}]\n", `f:1: rules[0].match.method: "G T" is not a method; want …`},
		{
			"rules: [{name: a, limits: 5/m, match: {host: 'a/b'}}]\n",
			`f:1: rules[0].match.host: "a/b" is not a host; want …`,
		},
		{
			"rules: [{name: a, limits: 5/m, match: {path: x}}]\n",
			`f:1: rules[0].match.path: "x" is not a path; want …`,
		},
		{
			"rules: [{name: a, limits: 5/m, match: {path: 're:('}}]\n",
			`f:1: rules[0].match.path: "(" is not a regular expression: error parsing regexp: …`,
		},
		{ok + "overrides: [{key: all, ban: true}]\n", "f:2: overrides[0].rule: is missing; want the name of a rule"},
		{ok + "overrides: [{rule: a, ban: true}]\n", `f:2: overrides[0].key: is missing; want the text of a key, such as "ip:192.0.2.*"`},
		{ok + "overrides: [{rule: a, key: all}]\n", "f:2: overrides[0].limits: is missing; want limits, or ban: true"},
		{ok + "overrides: [{rule: a, key: all, ban: true, limits: 5/m}]\n", "f:2: overrides[0]: has limits and ban; want one of them"},
		{
			ok + "overrides: [{rule: a, key: all, ban: true, until: 2027-01-01}]\n",
			`f:2: overrides[0].until: "2027-01-01" is not a time; want one such as 2027-01-01T00:00:00Z`,
		},
		{ok + "overrides: [{rule: a, key: 'ip:192.0.2.1', ban: true}]\n", `f:2: overrides[0].key: "ip:192.0.2.1" is no key of rule "a"; want "all"`},
		{"domain: d\ndescriptors: [{key: a, value: b, rate_limit: {unit: foo}}]\n", "f:2: invalid rate limit unit 'foo'"},
		{"domains:\n  - domain: d\n    descriptor: []\n", "f:3: config error, unknown key 'descriptor'"},
		{"domains:\n  - domain: d\n  - domain: d\n", "f:3: duplicate domain 'd' in config file"},
		{"domains: d\n", `f:1: domains: is "d"; want a list`},
		{"a: &a [*a]\n", "f:1: alias *a is inside of its own anchor"},
		{"rules:\n  - <<: 5\n", "f:2: << merges no mapping; want << and an alias of a mapping"},
		{"rules: [!!binary eA==]\n", "f:1: rules[0]: is of the type !!binary; want a mapping with name, match, key, limits, permits, mode, cost, label_keys"},
	} {
		_, err := Parse("f", []byte(c.text), Options{Env: func(string) (string, bool) { return "", false }})
		if err == nil {
			t.Errorf("%q: no error; want %q", c.text, c.want)
		} else if want, cut := strings.CutSuffix(c.want, "…"); err.Error() != want &&
			(!cut || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q:\ngot  %s\nwant %s", c.text, err, c.want)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	const text = "stor: memory\nwhen_store_fails: no\nrules:\n  - name: a\n    limits: [5/x, 6/y]\n    keys: ip\n"
	_, err := Parse("f", []byte(text), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	var at []string
	for line := range strings.Lines(err.Error()) {
		place, _, _ := strings.Cut(line, ": ")
		at = append(at, place)
	}
	if want := []string{"f:1", "f:2", "f:5", "f:5", "f:6"}; !reflect.DeepEqual(at, want) {
		t.Errorf("faults at %v; want %v:\n%v", at, want, err)
	}
}
