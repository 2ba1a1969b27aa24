package sample

import (
	"math"
	"slices"
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
	now := time.Now()
	r, ok := s.snapshot(name, now)
	if !ok {
		return Recent{}, false
	}
	found := recent(r.entries, r.class, most)
	found.To = now
	for _, begin := range []time.Time{s.started, now.Add(-Window), r.since} {
		if begin.After(found.From) {
			found.From = begin
		}
	}
	return found, true
}

// snapshot is what a rule held at a time.
type snapshot struct {
	entries []entry
	class   uint32    // keys of at least this class count
	since   time.Time // when they came in
}

// snapshot copies what the rule holds, so that decisions go on meanwhile.
func (s *Sample) snapshot(name string, now time.Time) (snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld(now)
	r := (*s.rules.Load())[name]
	if r == nil || len(r.keys) == 0 {
		return snapshot{}, false
	}
	class := r.complete(now)
	return snapshot{slices.Clone(r.entries[r.head:]), class, r.since[class]}, true
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
func recent(entries []entry, class uint32, most int) Recent {
	found := Recent{KeyShare: math.Ldexp(1, -int(class))}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.key.class < class })
	first, total := len(entries), 0
	for first > 0 && total+int(entries[first-1].n) <= most {
		first--
		total += int(entries[first].n)
	}
	if first > 0 && first < len(entries) {
		found.From = time.UnixMicro(entries[first].at)
	}
	keys := map[*key]bool{}
	found.Requests = make([]replay.Request, 0, total)
	for _, e := range entries[first:] {
		keys[e.key] = true
		if e.outcome.Denies() {
			found.Denied += int64(e.n)
		}
		for range e.n {
			found.Requests = append(found.Requests,
				replay.Request{At: time.UnixMicro(e.at), Key: e.key.text, Cost: e.cost})
		}
	}
	found.Keys = len(keys)
	return found
}
