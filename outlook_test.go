package headgate

import (
	"testing"
	"time"
)

// TestForetold holds back from what no answer of a state of the key's own looks like: waits
// that were cut off, or that depend on others.
func TestForetold(t *testing.T) {
	l := PerSecond(10)
	for _, c := range []struct {
		what string
		cost int64
		d    Decision
		ok   bool
	}{
		{"a denial", 5, Decision{l, 4, time.Millisecond, time.Second}, true},
		{"one that never fits", 11, Decision{l, 4, Never, time.Second}, true},
		{"a grant that was not charged", 3, Decision{l, 4, 0, time.Second}, true},
		{"at first sight", 3, Decision{l, 10, 0, 0}, true},
		{"newcomers who share what is left", 3, Decision{l, 4, time.Millisecond, time.Second}, false},
		{"more than is left, granted", 5, Decision{l, 4, 0, time.Second}, false},
		{"never, and it fits the capacity", 5, Decision{l, 4, Never, time.Second}, false},
		{"above the capacity, and not never", 11, Decision{l, 4, time.Millisecond, time.Second}, false},
		{"longer than the reset", 5, Decision{l, 4, time.Second + time.Microsecond, time.Second}, false},
		{"reset, and not full", 3, Decision{l, 4, 0, 0}, false},
		{"a reset of 285 years or more", 5, Decision{l, 4, time.Millisecond, duration(maxExact + 1)}, false},
		{"of a share", 5, Decision{l.Share(1), 4, time.Millisecond, time.Second}, false},
		{"less than nothing", 5, Decision{l, -1, time.Millisecond, time.Second}, false},
	} {
		o, ok := foretold(l.rule, c.d, c.cost)
		if ok != c.ok {
			t.Errorf("%s: %v", c.what, ok)
		}
		if v, certain := o.at(c.cost, 0); ok && (!certain || v.decision(l) != c.d) {
			t.Errorf("%s, at once: %+v, %v", c.what, v, certain)
		}
	}
}

// TestOutlookAgrees tells later answers of the same state from those after somebody else came.
func TestOutlookAgrees(t *testing.T) {
	l := Per(10, 10*time.Microsecond).Burst(10).rule // a token each microsecond
	o := outlook{l: l, remaining: 3, reset: 7}
	for _, c := range []struct {
		what                         string
		remaining, reset             int64
		elapsed, margin, laterMargin int64
		agrees                       bool
	}{
		{"at once", 3, 7, 0, 0, 0, true},
		{"later", 5, 5, 2, 0, 0, true},
		{"a microsecond too late", 5, 6, 2, 0, 0, false},
		{"a microsecond too early", 5, 4, 2, 0, 0, false},
		{"late within the margin of the first", 5, 6, 2, 1, 0, true},
		{"early within that of the later", 5, 4, 2, 0, 1, true},
		{"as much left as then", 3, 5, 2, 0, 0, true},
		{"less left", 4, 5, 2, 0, 0, false},
		{"full again", 10, 0, 2, 0, 0, false},
	} {
		later := outlook{l: l, remaining: c.remaining, reset: c.reset}
		if got := o.agrees(&later, c.elapsed, c.margin, c.laterMargin); got != c.agrees {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
