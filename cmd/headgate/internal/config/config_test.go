package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

const whole = `
store: redis://user:${PASSWORD}@127.0.0.1:6379/0
when_store_fails: share
instances: 3
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
    count: [401, 5xx]
    label_keys: true
  - name: tokens
    match: {path: /v1/chat/*}
    key: header:Authorization
    limits: 100000/h
    permits: 3
    max_wait: 1.5s
    max_waiting: 20
    cost: response:x-tokens-used
overrides:
  - rule: login
    key: "ip:192.0.2.*|header:*"
    limits: [50/m]
    until: 2027-01-01T00:00:00Z
    note: office
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
		Instances:      3,
		Trust: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"),
		},
		Listen: Listen{
			HTTP: ":8080", GRPC: "127.0.0.1:8081", Debug: "127.0.0.1:6070", Metrics: "[::1]:9090",
		},
		TLS: certs.Files{Cert: "tls.crt", Key: "tls.key", ClientCA: "ca.crt"},
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
				Mode: rules.Shadow, LabelKeys: true, Count: rules.Count{Statuses: []int{401, 5}},
			},
			{
				Name: "tokens", Match: rules.Match{Path: "/v1/chat/*"},
				Key:    []rules.KeyPart{{Source: "header", Name: "Authorization"}},
				Limits: []headgate.Limit{limit(t, "tokens=100000/h")}, Permits: 3,
				Cost: rules.Cost{ResponseHeader: "X-Tokens-Used"}, MaxWait: 1500 * time.Millisecond,
				MaxWaiting: 20,
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
	want.Hash, want.Warnings, want.domains, want.Places = c.Hash, c.Warnings, c.domains, c.Places
	for i := range want.Overrides {
		if want.Overrides[i].Limits == nil {
			want.Overrides[i].Limits = []headgate.Limit{}
		}
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// Without a proxy, nobody sees the status of a response, or the body of a request: a rule that
// counts by them is refused.
func TestCountWithoutProxy(t *testing.T) {
	const text = "rules:\n- {name: a, limits: 5/m, count: denied}\n- name: b\n  limits: 5/m\n" +
		"  count: [401, 4xx]\n- {name: c, limits: 5/m, key: [ip, 'body:model']}\n"
	if _, err := Parse("f", []byte(text), Options{}); err != nil {
		t.Error(err)
	}
	_, err := Parse("f", []byte(text), Options{NoProxy: true})
	const want = "f:5: rules[1].count: 401, 4xx needs the status of the response, which only the " +
		"proxy sees; want --proxy ADDR=URL, or count: denied\nf:6: rules[2].key[1]: body:model " +
		"needs the body, which only the proxy sees; want --proxy ADDR=URL"
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
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

// sample is a text of a file named f, and what is said about it, one line each.
type sample struct {
	text, want string
	line       int // of the text
}

// samples reads a file of testdata: texts, each with lines after it that begin with = and have what
// is wanted, and an empty line. An ellipsis at the end stands for any text.
func samples(t *testing.T, name string) (all []sample) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s, line, complete := sample{line: 1}, 0, false
	for text := range strings.Lines(string(content)) {
		line++
		want, isWant := strings.CutPrefix(text, "=")
		switch {
		case isWant:
			s.want += strings.TrimPrefix(want, " ")
			complete = true
		case complete: // the empty line
			all = append(all, s)
			s, complete = sample{line: line + 1}, false
		default:
			s.text += text
		}
	}
	return append(all, s)
}

// says reports whether got is what s wants.
func (s *sample) says(got string) bool {
	want := strings.TrimSuffix(s.want, "\n")
	if beginning, cut := strings.CutSuffix(want, "…"); cut {
		return strings.HasPrefix(got, beginning)
	}
	return got == want
}

// TestFaults holds each fault to its line and text.
func TestFaults(t *testing.T) {
	all := append(samples(t, "faults.txt"),
		sample{text: "", want: "f:1: the file is empty; want rules, domains or another field"},
		sample{text: "rules: []\nstore: a\xff\n", want: "f:2: error loading config file: yaml: …"},
		sample{
			text: "rules: []\nstore: \"a\x01\"\n",
			want: "f:2: error loading config file: yaml: control characters are not allowed; …",
		})
	if len(all) < 60 {
		t.Fatalf("%d samples", len(all))
	}
	for _, s := range all {
		_, err := Parse("f", []byte(s.text), Options{Env: noVariables})
		if err == nil || !s.says(err.Error()) {
			t.Errorf("faults.txt:%d:\n%s\ngot  %v\nwant %s", s.line, s.text, err, s.want)
		}
	}
}

func noVariables(string) (string, bool) { return "", false }

// TestAllFaultsAtOnce: faults hide no others, and a fault of a key causes none in the overrides of
// its rule.
func TestAllFaultsAtOnce(t *testing.T) {
	text := "stor: memory\nwhen_store_fails: no\n" +
		"rules:\n  - name: a\n    limits: [5/x, 6/y]\n    keys: ip\n" +
		"  - {name: b, key: ip, limits: 5/x}\n" +
		"  - {name: c, key: [ip, user], limits: 5/m}\n" +
		"  - {name: 1d, limits: 5/m, mode: x}\n" +
		"  - {name: e, key: x y, cost: -1, limits: [" + strings.Repeat("1/m,", 50) + "]}\n" +
		"  - {limits: []}\n" +
		"overrides:\n" +
		"  - {rule: a, key: \"ip:192.0.2.1\", ban: true}\n" +
		"  - {rule: b, key: 192.0.2.1, ban: true}\n" +
		"  - {rule: c, key: \"ip:192.0.2.1\", ban: true}\n" +
		"  - {rule: b, key: \"ip:192.0.2.1\", ban: true}\n"
	_, err := Parse("f", []byte(text), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	var at []string
	for line := range strings.Lines(err.Error()) {
		place, _, _ := strings.Cut(line, ": ")
		at = append(at, place)
	}
	want := []string{"f:1", "f:2", "f:5", "f:5", "f:6", "f:7", "f:8",
		"f:9", "f:9", "f:10", "f:10", "f:10", "f:11", "f:11", "f:14"}
	if !reflect.DeepEqual(at, want) {
		t.Errorf("faults at %v; want %v:\n%v", at, want, err)
	}
}

// A wrong value of a variable is not shown: it may be a secret.
func TestVariablesAreNotShown(t *testing.T) {
	env := func(string) (string, bool) { return "s3cret", true }
	_, err := Parse("f", []byte("listen: {http: \"${VAR}\"}"), Options{Env: env})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), `"${VAR}"`) {
		t.Error(err)
	}
}
