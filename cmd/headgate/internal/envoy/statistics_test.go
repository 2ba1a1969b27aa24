package envoy

import (
	"fmt"
	"testing"
)

const valued = `
domain: d
descriptors:
  - {key: v, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 9}}
  - {key: d, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 9}}
  - {key: w, value: "x*y*z", rate_limit: {unit: hour, requests_per_unit: 9}}
  - key: s
    value: "*.pdf"
    share_threshold: true
    detailed_metric: true
    rate_limit: {unit: hour, requests_per_unit: 9}
  - {key: ip, rate_limit: {unit: hour, requests_per_unit: 9}, descriptors: [{key: x}]}
  - {key: "a:b|10.0.0.1", rate_limit: {unit: hour, requests_per_unit: 9}}
`

func TestPathsOfStatistics(t *testing.T) {
	f := newFixture(t, Options{}, valued)
	f.ask(desc("v=1"), desc("d=2"), desc("w=xxyz"), desc("s=a.pdf"), desc("s=b.pdf"))
	f.ask(desc("a:b|10.0.0.1=3"))
	for _, path := range []string{"v_1", "d_2", "w_x*y*z", "a_b_10_0_0_1"} {
		f.counted(path, "total_hits=1 within_limit=1")
	}
	f.counted("s_*.pdf", "total_hits=2 within_limit=2")
	f.want("ok: ok/6,ok/7,ok", desc("s=c.pdf"), desc("w=xxyz"), desc("w=xyza"))
}

// TestStatisticsAreBounded brings more values than are counted one by one.
func TestStatisticsAreBounded(t *testing.T) {
	f := newFixture(t, Options{}, valued)
	for i := range 3000 {
		o := desc(fmt.Sprint("o=", i))
		o.Override = &Override{RequestsPerUnit: uint32(i), Unit: Day}
		f.ask(desc(fmt.Sprint("v=", i)), desc(fmt.Sprint("d=", i)), o)
		req := Request{Domain: fmt.Sprint("unknown", i), Descriptors: []Descriptor{desc("a=1")}}
		if err := f.Decide(t.Context(), &req, &f.resp); err != nil {
			t.Fatal(err)
		}
	}
	counters := map[string]int{}
	hits := map[string]uint64{}
	f.stats.Visit(func(c Counter) {
		switch c.Name {
		case "total_hits":
			counters[c.Path[:1]]++
			hits[c.Path] = c.Value
		case "domain_not_found":
			counters["unknown"]++
			hits[c.Domain] = c.Value
		}
	})
	for path, want := range map[string]uint64{
		"v_other": 2000, "d_other": 2000, "other": 2000, "v_0": 1,
	} {
		if hits[path] != want {
			t.Errorf("%s: %d hits; want %d", path, hits[path], want)
		}
	}
	for kind, want := range map[string]int{"v": 1002, "d": 1002, "o": 1001, "unknown": 1001} {
		if counters[kind] != want {
			t.Errorf("%s: %d counters; want %d", kind, counters[kind], want)
		}
	}
}

func TestCountersOutliveAConfiguration(t *testing.T) {
	f := newFixture(t, Options{}, twoLimits)
	f.want("ok: ok/3", desc("a=1"))
	const raised = "rate_limit: {unit: minute, requests_per_unit: 9}"
	f.Use(configOf(t, "domain: d\ndescriptors: [{key: a, "+raised+"}]"))
	f.want("ok: ok/7", desc("a=1"))
	f.counted("a", "total_hits=2 within_limit=2")
}
