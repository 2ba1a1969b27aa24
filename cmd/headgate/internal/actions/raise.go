package actions

import (
	"math"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// checkRaise returns an error if limits have neither a higher burst nor a higher rate than those of
// r in the file, and are not equal to them.
func checkRaise(r *rules.Rule, to []headgate.Limit) error {
	if len(r.Limits) == 0 {
		return nil
	}
	burst, rate := bounds(r.Limits)
	newBurst, newRate := bounds(to)
	if newBurst > burst || newRate > rate || newBurst == burst && newRate == rate {
		return nil
	}
	return refused("%s allows less than the limits of rule %q, %s; want a higher burst or rate; "+
		"to lower the limits of a key, use overrides in the file or /v1/overrides",
		strings.Join(rules.LimitTexts(to), ", "), r.Name,
		strings.Join(rules.LimitTexts(r.Limits), ", "))
}

// bounds returns what limits allow together: the burst, and the rate per second.
func bounds(limits []headgate.Limit) (burst int64, rate float64) {
	burst, rate = math.MaxInt64, math.Inf(1)
	for _, l := range limits {
		tokens, period := l.Rate()
		burst = min(burst, l.Capacity())
		rate = min(rate, float64(tokens)/period.Seconds())
	}
	return burst, rate
}
