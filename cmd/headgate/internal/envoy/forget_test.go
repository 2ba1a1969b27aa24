package envoy

import (
	"fmt"
	"testing"
)

// Configurations that come and go do not leave their statistics behind for ever.
func TestStatisticsOfFormerRules(t *testing.T) {
	f := newFixture(t, Options{}, "domain: d\n")
	for i := range 150 {
		f.Use(configOf(t, fmt.Sprintf("domain: d\ndescriptors:\n"+
			"- {key: r%d, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 2}}\n"+
			"- {key: stays, rate_limit: {unit: hour, requests_per_unit: 1000}}\n", i)))
		f.ask(desc("stays=1"))
		for j := range 100 {
			f.ask(desc(fmt.Sprintf("r%d=%d", i, j)))
		}
	}
	if n := len(f.stats.counters); n > maxKeptCounters+200 {
		t.Errorf("%d counters are kept", n)
	}
	if n := f.stats.rules[statKey{"d", "stays"}].own.TotalHits.Load(); n != 150 {
		t.Errorf("stays has %d hits", n)
	}
}
