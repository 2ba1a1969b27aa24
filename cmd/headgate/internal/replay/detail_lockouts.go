package replay

import (
	"time"
)

// lockouts records when a limit denied each key. It takes memory for denied keys only, besides 4
// bytes for a key.
type lockouts struct {
	slots []uint32 // by key: 1 + index in all; shorter if those after were never denied
	all   []lockout
}

// lockout is the times of the denials of a key. Times are never 0.
type lockout struct {
	first, last int64
	since       int64 // the first denial after the last grant; 0 if none
	longest     int64
}

func (l *lockouts) deny(key uint32, at int64) {
	l.slots = grown(l.slots, key)
	if l.slots[key] == 0 {
		l.all = append(l.all, lockout{first: at})
		l.slots[key] = uint32(len(l.all))
	}
	k := &l.all[l.slots[key]-1]
	k.last = at
	if k.since == 0 {
		k.since = at
	}
}

func (l *lockouts) allow(key uint32, at int64) {
	if int(key) >= len(l.slots) || l.slots[key] == 0 {
		return
	}
	k := &l.all[l.slots[key]-1]
	if k.since > 0 {
		k.longest = max(k.longest, at-k.since)
		k.since = 0
	}
}

// describe sets the times of a key that was denied.
func (l *lockouts) describe(d *DeniedKey, key uint32) {
	k := l.all[l.slots[key]-1]
	if k.since > 0 && k.last-k.since >= k.longest { // its last request was denied
		k.longest, d.ToLast = k.last-k.since, true
	}
	d.First, d.Last = time.UnixMicro(k.first).UTC(), time.UnixMicro(k.last).UTC()
	d.LockedOutS = float64(k.longest) / 1e6
}
