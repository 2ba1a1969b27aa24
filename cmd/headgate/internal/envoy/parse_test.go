package envoy

import (
	"strings"
	"testing"
)

// TestRefusals holds the texts of faults, each after file and line. e2e/upstream compares those of
// the files in upstream's module with what upstream says.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unit": {
			"domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: foo",
			"5: invalid rate limit unit 'foo'",
		},
		"duplicate key in base64": {
			"domain: d\ndescriptors:\n  - {key: k, value: !!binary dg==}\n  - {key: k, value: v}",
			"4: duplicate descriptor composite key 'd.k_v'",
		},
		"bool key": {
			"domain: d\nyes: x",
			"2: config error, key is not of type string: true",
		},
		"float": {
			"domain: d\ndescriptors:\n  - key: k\n    value: 0.5",
			"4: error checking config",
		},
		"share": {
			"domain: d\ndescriptors:\n  - key: k\n    value: v\n    share_threshold: true",
			"3: share_threshold can only be used with wildcard values (containing '*'), " +
				"but found key 'k_v'",
		},
		"type": {
			"domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, requests_per_unit: many}",
			"4: error loading config file: yaml: cannot unmarshal !!str `many` into uint32",
		},
		"not a list": {
			"domain: d\ndescriptors: x",
			"2: error loading config file: yaml: " +
				"cannot unmarshal !!str `x` into []config.YamlDescriptor",
		},
		"alias of itself": {
			"domain: d\ndescriptors: &a\n  - key: k\n    descriptors: *a",
			"4: error loading config file: yaml: anchor 'a' value contains itself",
		},
		"multiplier": {
			"domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: year, unit_multiplier: 286}",
			"4: unit_multiplier is 286; want at most 285 with unit YEAR",
		},
		"multiplier of 0": {
			"domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, unit_multiplier: 0}",
			"4: unit_multiplier is \"0\"; want a whole number of at least 1",
		},
		"limit": {
			"domain: d\ndescriptors:\n  - key: k\n    limit: 5/x",
			"4: limit '5/x': ",
		},
		"two limits": {
			"domain: d\ndescriptors:\n  - key: k\n    limit: 5/s\n    rate_limit: {unit: hour}",
			"5: limit '5/s' has a unit, ",
		},
		"misplaced limit": {
			"domain: d\nlimit: 5/s",
			"2: config error, unknown key 'limit' at the top of the file",
		},
		"metadata not map": {
			"domain: d\ndescriptors:\n  - key: k\n    metadata: x",
			"4: error loading config file: yaml: " +
				"cannot unmarshal !!str `x` into map[string]interface {}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, errs := parseFile("f.yaml", []byte(c.text))
			if d != nil || len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), "f.yaml:"+c.want) {
				t.Errorf("got %v, %v; want %s", d, errs, c.want)
			}
		})
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	_, errs := parseFile("f.yaml", []byte("domain: d\ndescriptors:\n"+
		"  - key:\n  - key: k\n    rate_limit: {unit: x}\n  - {key: k}"))
	if len(errs) != 3 {
		t.Errorf("got %v; want three faults", errs)
	}
}

func TestDomainsOfOneName(t *testing.T) {
	parse := func(file, text string) *Domain {
		t.Helper()
		d, errs := parseFile(file, []byte(text))
		if errs != nil {
			t.Fatal(errs)
		}
		return d
	}
	a := parse("a.yaml", "domain: d\ndescriptors: [{key: a}]")
	b := parse("b.yaml", "domain: d\ndescriptors: [{key: b}]")
	_, err := NewConfig([]*Domain{a, b}, false)
	if err == nil || err.Error() != "b.yaml:1: duplicate domain 'd' in config file" {
		t.Error(err)
	}
	if c, err := NewConfig([]*Domain{a, b}, true); err != nil || len(c.domains["d"].children) != 2 {
		t.Error(err)
	}
	_, err = NewConfig([]*Domain{a, a}, true)
	if err == nil || err.Error() != "a.yaml:2: duplicate descriptor composite key 'd.a'" {
		t.Error(err)
	}
}

func TestWhatUpstreamAccepts(t *testing.T) {
	const text = `
domain: &d edge
shadow_mode: true
descriptors:
  - &base
    key: yes
    value: 010
    shadow_mode: on
    rate_limit: {unit: MiNuTe, requests_per_unit: 0x10, requests_per_unit: 1_000}
    metadata: {a: 1, 2: [x, ~, 1.5, yes], c: {d: 2001-01-01}}
  - <<: *base
    value: 2001-01-01
    rate_limit: ~
    descriptors:
  - {key: *d, limit: gold=100/15m burst 20}
`
	d, errs := parseFile("f.yaml", []byte(text))
	if errs != nil {
		t.Fatal(errs)
	}
	c, err := NewConfig([]*Domain{d}, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = "edge.yes_010: unit=MINUTE requests_per_unit=1000, " +
		"shadow_mode: true, quota_mode: false\n" +
		"edge.edge: unit=MINUTE requests_per_unit=100 unit_multiplier=15, " +
		"shadow_mode: false, quota_mode: false, limit: 100/15m burst 20\n"
	if got := c.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	s := d.Descriptors[1]
	if s.Key != "yes" || s.Value != "2001-01-01" || !s.ShadowMode || s.RateLimit != nil {
		t.Errorf("merged: %+v", s)
	}
	const warning = "f.yaml:3: 'shadow_mode' has no effect at the top of the file"
	if len(d.Warnings) != 1 || d.Warnings[0] != warning {
		t.Error(d.Warnings)
	}
}
