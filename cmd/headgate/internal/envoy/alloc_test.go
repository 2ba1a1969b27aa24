//go:build !race

// Under the race detector sync.Pool forgets at random, and allocations cannot be counted.

package envoy

import "testing"

func TestAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		text string
		want float64
	}{
		"each by itself": {Options{}, twoLimits, 1}, // the keys
		"all or nothing": {Options{StopWhenOverLimit: true}, twoLimits, 1},
		"a local cache":  {Options{LocalCacheBytes: 1}, twoLimits, 1},
	} {
		f := newFixture(t, c.o, c.text)
		ds := []Descriptor{desc("a=1"), desc("b=10.0.0.1"), desc("none=2")}
		req := Request{Domain: "d", Descriptors: ds}
		f.ask(req.Descriptors...)
		if got := testing.AllocsPerRun(200, func() {
			if err := f.Decide(t.Context(), &req, &f.resp); err != nil {
				t.Fatal(err)
			}
		}); got > c.want {
			t.Errorf("%s: %v allocations; want %v", name, got, c.want)
		}
	}
}
