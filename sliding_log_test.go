package headgate

import (
	"testing"
	"time"
)

const maxLog = 65_535

// As many entries as a log can have: 65,535 grants at as many instants.
func TestLongestSlidingLog(t *testing.T) {
	m := NewMemorySize(10)
	n := int64(maxLog)
	if testing.Short() {
		n = 4095
	}
	l := SlidingLog(n, time.Second)
	for i := range n {
		ask(t, m, "key", l, 1, time.Duration(i)*micro)
	}
	play(t, m, l, []row{
		{time.Duration(n) * micro, 1, false, 0, time.Second - time.Duration(n)*micro,
			time.Second - micro, "full"},
		{time.Duration(n) * micro, n, false, 0, time.Second - micro, time.Second - micro,
			"all of it, when the last has left"},
		{time.Second + 9*micro, 10, true, 0, 0, time.Second, "ten have left"},
		{time.Second + 9*micro, -20, true, 20, 0, time.Duration(n)*micro - 20*micro,
			"twenty are given back: ten of now, and the ten before"},
		{time.Second + 9*micro, 20, true, 0, 0, time.Second, "and taken again"},
		{3 * time.Second, n, true, 0, 0, time.Second, "at once, when all have left"},
		{3 * time.Second, -1000, true, 1000, 0, time.Second, "a thousand of them back"},
		{4*time.Second - micro, 1001, false, 1000, micro, micro, "the rest is there"},
		{4 * time.Second, 0, true, n, 0, 0, "and gone"},
	})
}
