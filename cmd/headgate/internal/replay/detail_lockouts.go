package replay

import "time"

// lockouts records when a limit denied each key. It takes memory for denied keys only, besides 4
// bytes for a key.
type lockouts struct {
	slots []uint32 // by key: 1 + index in all; shorter if those after were never denied
	all   []lockout
}

// lockout is the denials of a key. Times are never 0.
type lockout struct {
	first, last int64
	since       int64 // the first denial after the last grant; 0 if none
	longest     int64 // from the first to the last denial without a grant between
	retry       time.Duration
}

// deny records a denial that a request may retry after so long.
func (l *lockouts) deny(key uint32, at int64, retry time.Duration) {
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
	if run := at - k.since; run > k.longest || run == k.longest && retry > k.retry {
		k.longest, k.retry = run, retry
	}
}

func (l *lockouts) allow(key uint32) {
	if int(key) < len(l.slots) && l.slots[key] > 0 {
		l.all[l.slots[key]-1].since = 0
	}
}

// describe sets the times of a key that was denied.
func (l *lockouts) describe(d *DeniedKey, key uint32) {
	k := l.all[l.slots[key]-1]
	d.First, d.Last = time.UnixMicro(k.first).UTC(), time.UnixMicro(k.last).UTC()
	d.DeniedRunS, d.RetryAfterS = float64(k.longest)/1e6, k.retry.Seconds()
}
