package redisstore

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Waits over 285 years are shown as 285 years, as in Memory.
func TestLongestWaits(t *testing.T) {
	const longest = (1<<53 - 1) * time.Microsecond
	for micros, want := range map[int64]time.Duration{
		1: time.Microsecond, 1<<53 - 1: longest, 1 << 53: longest, 9_009_341_493_718_498: longest,
		1 << 54: longest,
	} {
		r := headgate.Request{Key: "k", Limit: headgate.PerSecond(1), Cost: 1}
		d, err := decision(&r, "k", number(number(number(nil, 0, 7), micros, 7), micros, 7))
		if err != nil || d.RetryAfter != want || d.ResetAfter != want {
			t.Errorf("%d: %+v, %v; want %s", micros, d, err, want)
		}
	}
}
