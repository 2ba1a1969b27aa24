package envoy

import "testing"

// A limit in Headgate's text form that goes with no other, because it is in shadow or a quota,
// holds nothing back if it denies, and is not held back.
func TestAllOrNothingBesideOneAlone(t *testing.T) {
	for _, mode := range []string{"shadow_mode", "quota_mode"} {
		f := newFixture(t, Options{StopWhenOverLimit: true}, `
domain: d
descriptors:
- {key: two, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: alone, rate_limit: {limit: "1/h"}, `+mode+`: true}
`)
		f.ask(desc("alone=1"))
		for i := range 4 {
			got := f.ask(desc("two=1"), desc("alone=1"))
			if over := got.Statuses[0].Code == OverLimit; over != (i >= 2) {
				t.Errorf("%s: request %d: %s", mode, i, codes(got))
			}
		}
	}
}
