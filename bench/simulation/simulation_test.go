package simulation

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"
)

var full = flag.Bool("full", false, "an hour of 1,000 instances, written to the docs")

// hour is the whole run, and short one for each change.
var (
	hour  = plan{seed: 1, instances: 1000, keys: 10000, homes: 4, rate: 2000, length: time.Hour, life: 10 * time.Minute, calm: time.Minute}
	short = plan{seed: 1, instances: 100, keys: 1000, homes: 4, rate: 1000, length: 2 * time.Minute, life: time.Minute, calm: 10 * time.Second}
)

func simulate(t *testing.T, p plan) *fleet {
	t.Helper()
	var f *fleet
	synctest.Test(t, func(t *testing.T) {
		var err error
		if f, err = newFleet(p); err != nil {
			t.Fatal(err)
		}
		f.run(t.Context())
	})
	return f
}

func TestSimulation(t *testing.T) {
	p := short
	if *full {
		p = hour
	}
	f := simulate(t, p)
	var asked, calls, granted, could, waste int64
	for r, k := range f.byRank {
		asked += k.asked
		calls += k.calls
		granted += k.granted
		could += k.could
		waste += k.waste
		if k.over > 0 || k.tooFar > 0 {
			t.Errorf("%s: over %d, tooFar %d short %d waste %d", k.key, k.over, k.tooFar, k.short, k.waste)
		}
		if r < 40 {
			t.Logf("%s asked %d calls %d granted %d could %d short %d waste %d over %d", k.key, k.asked, k.calls, k.granted, k.could, k.short, k.waste, k.over)
		}
	}
	t.Logf("%d asked, %d calls, %d granted %d could %d waste; %+v", asked, calls, granted, could, waste, &f.counts)
}
