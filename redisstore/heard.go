package redisstore

import "time"

// heard are the numbers of instances that an instance went by lately, the last one at the end. One that
// a later and no smaller one makes idle is left out, so they fall, and the first is the largest.
type heard []standing

type standing struct {
	instances int64
	until     time.Time // when the next one was heard
}

// hear adds what was heard at now, and returns the largest of those that were gone by
// since then less keep: the last one before counts from now on, however old, because nothing else was known.
func (h *heard) hear(instances int64, now time.Time, keep time.Duration) int64 {
	all := *h
	if n := len(all); n > 0 {
		all[n-1].until = now
	}
	for len(all) > 0 && all[len(all)-1].instances <= instances {
		all = all[:len(all)-1]
	}
	for len(all) > 0 && now.Sub(all[0].until) >= keep {
		all = all[1:]
	}
	all = append(all, standing{instances: instances})
	*h = all
	return all[0].instances
}
