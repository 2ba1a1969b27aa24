package config

import (
	"strings"
	"testing"
	"time"
)

// now is before the end of most overrides of the tests.
var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// TestWarnings holds each warning to its line and text.
func TestWarnings(t *testing.T) {
	for _, s := range samples(t, "warnings.txt") {
		c, err := Parse("f", []byte(s.text), Options{Now: now})
		if err != nil {
			t.Errorf("warnings.txt:%d: %v", s.line, err)
		} else if got := strings.Join(c.Warnings, "\n"); !s.says(got) {
			t.Errorf("warnings.txt:%d:\n%s\ngot  %s\nwant %s", s.line, s.text, got, s.want)
		}
	}
}

func TestReport(t *testing.T) {
	at := tree(t, map[string]string{
		"rules.yaml": `
store_timeout: 250ms
rules:
  - {name: all, limits: 1000/s}
  - name: login
    match: {method: [POST, PUT], host: x.org, path: /login}
    key: [ip/48, header:x-key]
    limits: [5/m, 900/h]
    mode: shadow
    cost: response:used
  - {name: work, key: ip, limits: 9/m, permits: 3, cost: 10, count: [401, 5xx],
     headroom: {header: x-class, batch: 50%}}
  - {name: model, limits: 9000/m, cost: {tokens: {estimate: 2000, output: 4}}}
  - {name: late, limits: 9000/m, cost: {response: used, estimate: 500}}
overrides:
  - {rule: all, key: all, limits: 9/s burst 20, until: 2027-01-01T01:00:00+01:00}
  - {rule: work, key: "ip:192.0.2.*", ban: true}
`,
		"edge.yaml": "domain: d\ndescriptors:\n" +
			"  - {key: k, rate_limit: {unit: day, requests_per_unit: 7}}\n",
	})
	c, err := Load([]string{at}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	const want = `file edge.yaml
file rules.yaml
store_timeout: 250ms; gateways and clients need longer timeouts
rule all: 1000/s without a key
rule login: 5/m, 900/h for each ip/48, header:X-Key of POST or PUT x.org /login` +
		`, cost response:Used, shadow
rule work: 9/m, 3 permits for each ip, cost 10, counts 401, 5xx, headroom batch 50% by X-Class
rule model: 9000/m without a key` +
		`, cost tokens estimate 2000 input 1 output 4 cached 0
rule late: 9000/m without a key` +
		`, cost response:Used estimate 500
override of all for all: 9/s burst 20 until 2027-01-01T00:00:00Z
override of work for ip:192.0.2.*: ban
domain d.k: unit=DAY requests_per_unit=7, shadow_mode: false, quota_mode: false
warning: rules.yaml:11: rules[2]: a cost of 10 never fits limit 9/m: every request is denied
valid: 2 files, 5 rules, 2 overrides, 1 domain, 1 warning
`
	got := c.Report()
	if got = strings.ReplaceAll(got, at+"/", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
