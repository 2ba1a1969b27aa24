package headgate

import (
	"testing"
	"time"
)

// TestForetold holds back from what no answer of a state of the key's own looks like: waits
// that were cut off, or that depend on others.
func TestForetold(t *testing.T) {
	l := TokenBucket(10, 10, time.Second)
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
