package serve

import (
	"log/slog"
	"sync"
	"time"

	"github.com/headgate/headgate/fallback"
)

// The bounds of an outage, in pings.
const (
	calmPings    = 20 // without a failure, after which it has ended
	manyFailures = 5  // in calmPings; fewer can be due to a busy machine
)

// outageLog logs when the store begins to fail, whatever notices it first, and when it is well
// again: two lines for an outage.
type outageLog struct {
	log   *slog.Logger
	store string // its name

	mu    sync.Mutex
	on    bool
	since time.Time
	began uint64   // failures before the outage
	seen  []uint64 // failures at the last looks, the oldest first
	calm  int      // looks without a failure
}

// begin logs why an outage begins, if there is none yet.
func (l *outageLog) begin(why string, more ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start(why, more...)
}

func (l *outageLog) start(why string, more ...any) {
	if l.on {
		return
	}
	l.on, l.calm, l.since = true, 0, time.Now()
	if len(l.seen) > 0 {
		l.began = l.seen[0]
	}
	l.log.Error(why, append([]any{"store", l.store}, more...)...)
}

// look looks at the counts after a ping, which may have failed.
func (l *outageLog) look(ping error, stats fallback.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, stats.Failures)
	l.seen = l.seen[max(0, len(l.seen)-calmPings):]
	last := l.seen[max(0, len(l.seen)-2)]
	switch {
	case ping != nil:
		l.start("the store does not answer", "error", ping)
	case stats.Failures-l.seen[0] >= manyFailures:
		l.start("calls of the store fail, or take too long", "failed", stats.Failures-l.seen[0])
	}
	if l.calm++; ping != nil || stats.Degraded || stats.Failures > last {
		l.calm = 0
	}
	if l.on && l.calm == calmPings {
		l.on = false
		l.log.Warn("the store decides again", "store", l.store, "failed", stats.Failures-l.began,
			"after", time.Since(l.since).Round(time.Second))
	}
}
