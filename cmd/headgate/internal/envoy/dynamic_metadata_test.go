package envoy

import (
	"reflect"
	"testing"
)

func TestDynamicMetadata(t *testing.T) {
	f := newFixture(t, Options{DynamicMetadata: true}, `
domain: d
descriptors:
  - key: a
    metadata: {plan: gold, in: {a: 1}}
    rate_limit: {unit: hour, requests_per_unit: 5}
  - key: b
    metadata: {plan: silver, in: {a: 2, b: [true]}}
    rate_limit: {unit: hour, requests_per_unit: 5}
  - {key: over, metadata: {never: 1}, rate_limit: {unit: hour, requests_per_unit: 0}}
`)
	own := hits(2, desc("x=y"))
	own.Override = &Override{RequestsPerUnit: 1, Unit: Minute, Multiplier: 3}
	ds := []Descriptor{desc("a=1"), desc("b=2, c="), desc("b=2"), desc("over=1"), own}
	req := Request{Domain: "d", HitsAddend: 1, Descriptors: ds}
	for range 2 { // merging does not change the configuration
		if err := f.Decide(t.Context(), &req, &f.resp); err != nil {
			t.Fatal(err)
		}
	}
	entries := func(es ...any) map[string]any { return map[string]any{"entries": es} }
	last := entries("x=y")
	last["limit"] = "requests_per_unit:1 unit:MINUTE unit_multiplier:{value:3}"
	last["hitsAddend"] = 2.0
	want := map[string]any{
		"domain": "d", "hitsAddend": 1.0,
		"descriptors": []any{
			entries("a=1"), entries("b=2", "c="), entries("b=2"), entries("over=1"), last,
		},
		"metadata": map[string]any{"plan": "gold", "in": map[string]any{"a": 1.0, "b": []any{true}}},
	}
	if got := f.resp.Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}
