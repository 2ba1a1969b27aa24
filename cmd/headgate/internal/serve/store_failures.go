package serve

import "github.com/headgate/headgate/fallback"

// calmPings is how many pings pass without a failed call before the failures have ended.
const calmPings = 20

// failureLog logs when calls of a store that answers begin to fail, or to take too long, and when
// they have ended. An open circuit is logged by itself.
type failureLog struct {
	log   func(text string, failed uint64)
	seen  uint64 // failures up to the last look
	began uint64 // failures before the first of them
	calm  int    // looks without one
	on    bool
}

// look looks at the counts after a ping.
func (f *failureLog) look(stats fallback.Stats) {
	more := stats.Failures > f.seen
	switch {
	case more && !f.on && !stats.Degraded:
		f.on, f.began = true, f.seen
		f.log("calls of the store fail, or take too long", stats.Failures-f.seen)
	case f.on && !more && f.calm == calmPings-1:
		f.on = false
		f.log("calls of the store succeed again", stats.Failures-f.began)
	}
	if f.calm++; more || !f.on {
		f.calm = 0
	}
	f.seen = stats.Failures
}
