package envoy

import (
	"testing"
)

// TestLookup follows the rules of the tree: the exact name, then wildcards in the order of the
// file, then the key alone; and never back.
func TestLookup(t *testing.T) {
	c := configOf(t, `
domain: d
descriptors:
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: k, value: free}
  - {key: k, value: "a*", rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: k, value: "*b", rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: k, value: "*c", descriptors: [{key: x, rate_limit: {unit: hour, requests_per_unit: 4}}]}
  - {key: k_c, rate_limit: {unit: hour, requests_per_unit: 5}}
`)
	for text, want := range map[string]uint32{
		"k=": 1, "k=z": 1, "k=free": 0, "k=ab": 2, "k=bb": 3, "k=c": 5, "k=cc": 0, "k=cc, x=1": 4,
		"k=z, x=1": 0, "k=cc, y=1": 0, "k_c=": 5, "other=1": 0, "k=cc, x=1, x=1": 0,
	} {
		d := desc(text)
		f, ok := c.Find("d", &d)
		if f.Limit.RequestsPerUnit != want || ok != (want > 0) {
			t.Errorf("%s: %d, %t; want %d", text, f.Limit.RequestsPerUnit, ok, want)
		}
	}
	if _, ok := c.Find("e", &Descriptor{}); ok {
		t.Error("another domain has a limit")
	}
}

func TestKeysOfDifferentDescriptorsDiffer(t *testing.T) {
	seen := map[string]Descriptor{}
	parts := []string{"", "a", "=", "|", `\`, "a=", "|a", `\=`, `\|`}
	for _, k := range parts {
		for _, v := range parts {
			for _, d := range []Descriptor{
				{Entries: []Entry{{k, v}}},
				{Entries: []Entry{{k, v}, {v, k}}},
				{Entries: []Entry{{k, v}, {k, v}}},
				{Entries: []Entry{{"", k}, {v, ""}}},
			} {
				key := string(appendKey(nil, "d", &d, nil))
				if old, ok := seen[key]; ok && !same(old, d) {
					t.Errorf("%q is the key of %v and of %v", key, old, d)
				}
				seen[key] = d
			}
		}
	}
}

func same(a, b Descriptor) bool {
	if len(a.Entries) != len(b.Entries) {
		return false
	}
	for i := range a.Entries {
		if a.Entries[i] != b.Entries[i] {
			return false
		}
	}
	return true
}

func TestWarnings(t *testing.T) {
	d, errs := parseFile("f.yaml", []byte("domain: d\ndescriptors:\n"+
		"  - key: a\n  - key: a_b\n    value: c\n  - key: ab\n"))
	want := "f.yaml:4: key 'a_b' and value 'c' also match an entry with key 'a' and value 'b_c'"
	if errs != nil || len(d.Warnings) != 1 || d.Warnings[0] != want {
		t.Error(errs, d.Warnings)
	}
}
