package sample

import (
	"math"
	"time"

	"github.com/headgate/headgate/replay"
)

// Recent are the recent requests of the keys of a rule that are in a sample.
type Recent struct {
	From, To time.Time
	KeyShare float64 // of all keys of the rule
	Keys     int     // that have requests
	Denied   int64   // requests that the rule has denied, or would have
	Requests []replay.Request
}

// Recent returns the latest requests of a rule, at most the given number. It reports false if there
// is none. Requests of a key that are less than 50 ms apart may have the same time.
func (s *Sample) Recent(name string, most int) (Recent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	r := (*s.rules.Load())[name]
	if r == nil || len(r.keys) == 0 {
		return Recent{}, false
	}
	found := r.recent(r.complete(now), most)
	found.To = now
	for _, begin := range []time.Time{s.started, now.Add(-Window)} {
		if begin.After(found.From) {
			found.From = begin
		}
	}
	return found, true
}

// complete returns the lowest class from which on all keys have been in for a Window: of the others
// a part of the history is missing. If there is no such key, all count.
func (r *rule) complete(now time.Time) uint32 {
	level := r.level.Load()
	lowest := level
	for lowest < maxLevel && now.Sub(r.since[lowest]) < Window {
		lowest++
	}
	for _, k := range r.keys {
		if k.class >= lowest {
			return lowest
		}
	}
	return level
}

// recent returns the requests of keys of at least a class.
func (r *rule) recent(class uint32, most int) Recent {
	found := Recent{KeyShare: math.Ldexp(1, -int(class)), From: r.since[class]}
	first, total := len(r.entries), 0
	for ; first > r.head; first-- {
		if e := &r.entries[first-1]; e.key.class >= class {
			if total += int(e.n); total > most && total > int(e.n) {
				found.From = time.UnixMicro(r.entries[first].at)
				total -= int(e.n)
				break
			}
		}
	}
	keys := map[*key]bool{}
	found.Requests = make([]replay.Request, 0, min(total, most))
	for _, e := range r.entries[first:] {
		if e.key.class < class {
			continue
		}
		keys[e.key] = true
		n := min(int(e.n), most)
		if e.outcome.Denies() {
			found.Denied += int64(n)
		}
		for range n {
			found.Requests = append(found.Requests,
				replay.Request{At: time.UnixMicro(e.at), Key: e.key.text, Cost: e.cost})
		}
	}
	found.Keys = len(keys)
	return found
}
