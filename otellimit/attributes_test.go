package otellimit

import "testing"

// Of those who come with a new name at once, the one who is late finds no room, or the
// series of the first.
func TestLimitsAddedAtOnce(t *testing.T) {
	var l limits
	l.start(1, nil)
	first := l.add("a")
	if first == l.rest || l.add("a") != first || l.add("b") != l.rest || len(*l.known.Load()) != 1 {
		t.Errorf("names known: %v; want a alone", *l.known.Load())
	}
}
