package acts

import (
	"math"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
)

// isRaise refuses limits that allow less than those of r in the file: fewer at once or fewer in the
// long run, and nothing more.
func isRaise(r *rules.Rule, to []headgate.Limit) error {
	if len(r.Limits) == 0 {
		return nil
	}
	burst, rate := bounds(r.Limits)
	newBurst, newRate := bounds(to)
	if newBurst > burst || newRate > rate || newBurst == burst && newRate == rate {
		return nil
	}
	return refused("%s allows less than the limits of rule %q, %s; want more for a raise: to allow "+
		"a key less, use overrides in the file or in /v1", texts(to), r.Name, texts(r.Limits))
}

// bounds returns what limits allow together: at once, and in a second of the long run.
func bounds(limits []headgate.Limit) (burst int64, rate float64) {
	burst, rate = math.MaxInt64, math.Inf(1)
	for _, l := range limits {
		tokens := l.Refill()
		if tokens == 0 { // a window
			tokens = l.Capacity()
		}
		burst = min(burst, l.Capacity())
		rate = min(rate, float64(tokens)/l.Period().Seconds())
	}
	return burst, rate
}

func texts(limits []headgate.Limit) string {
	list := make([]string, len(limits))
	for i, l := range limits {
		list[i] = l.Named("").String()
	}
	return strings.Join(list, ", ")
}
