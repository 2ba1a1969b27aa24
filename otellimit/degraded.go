package otellimit

import (
	"sync"
	"time"
)

// degradedTime adds up how long decisions have been degraded.
type degradedTime struct {
	mu    sync.Mutex
	past  time.Duration // up to the last change
	since time.Time     // zero while they are not
}

func (d *degradedTime) set(degraded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case degraded && d.since.IsZero():
		d.since = time.Now()
	case !degraded && !d.since.IsZero():
		d.past += time.Since(d.since)
		d.since = time.Time{}
	}
}

func (d *degradedTime) total() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		return d.past
	}
	return d.past + time.Since(d.since)
}
