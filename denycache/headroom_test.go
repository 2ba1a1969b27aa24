package denycache

import (
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
)

// A denial of a request that leaves headroom is remembered for those that need as much or more. It
// denies none that needs less.
func TestADenialOfBatchDeniesNoCriticalRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDistant(0)
		s := must(New(d, 0))
		limit := headgate.PerMinute(100)
		for _, step := range []struct {
			cost, headroom int64
			allowed, asks  bool
		}{
			{50, 50, true, true},
			{1, 50, false, true},
			{1, 50, false, false},
			{2, 50, false, false},
			{51, 0, false, false}, // as much as was denied
			{1, 49, true, true},
			{1, 0, true, true},
			{48, 0, true, true},
			{1, 0, false, true},
			{1, 50, false, false}, // more than what was denied last
			{1, 100, false, true}, // never
		} {
			before := d.asked.Load()
			r := headgate.Request{Key: "k", Limit: limit, Cost: step.cost, Headroom: step.headroom}
			got := must(s.Take(t.Context(), r))
			if asked := d.asked.Load() > before; got.Allowed() != step.allowed || asked != step.asks {
				t.Errorf("%+v: allowed %t, asked the store %t", step, got.Allowed(), asked)
			}
		}
		group := []headgate.Request{
			{Key: "g", Limit: limit, Cost: 60}, {Key: "h", Limit: limit, Cost: 1, Headroom: 50},
		}
		ds := make([]headgate.Decision, 2)
		if err := s.TakeAll(t.Context(), group, ds); err != nil || !headgate.Granted(group, ds) {
			t.Fatal(ds, err)
		}
		group[0].Cost, group[0].Headroom = 1, 40
		for _, critical := range []bool{false, true} {
			if critical {
				group[0].Headroom, group[1].Headroom = 0, 0
			}
			if err := s.TakeAll(t.Context(), group, ds); err != nil || headgate.Granted(group, ds) != critical {
				t.Errorf("a group, critical %t: %+v, %v", critical, ds, err)
			}
		}
		bad := headgate.Request{Key: "k", Limit: limit, Cost: 51, Headroom: -1}
		if got, err := s.Take(t.Context(), bad); err == nil {
			t.Errorf("a headroom below 0: %+v", got)
		}
	})
}
