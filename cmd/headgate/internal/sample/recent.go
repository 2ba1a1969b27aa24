package sample

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Recent are the recent requests of the keys of a rule that are in a sample.
type Recent struct {
	From, To time.Time
	KeyShare float64 // of all keys of the rule
	Keys     int     // that have requests
	Denied   int64   // of the requests, as it was or would have been
	Requests []replay.Request

	DeniedBy DeniedBy
	Aside    int64 // requests that a ban or an override decided, and that are not in Requests
}

// DeniedBy counts what was denied, or would have been, by the cause.
type DeniedBy struct {
	Limit    int64 `json:"limit"` // of the rule
	Permits  int64 `json:"permits"`
	Ban      int64 `json:"ban"`
	Override int64 `json:"override"` // its limits
}

func (d *DeniedBy) add(c rules.Cause, n int64) {
	switch c {
	case rules.ByLimits:
		d.Limit += n
	case rules.ByPermits:
		d.Permits += n
	case rules.ByBan:
		d.Ban += n
	case rules.ByOverride:
		d.Override += n
	}
}

// Together returns the latest requests of all parts, at most the given number. Those that a ban or
// an override decided are left aside, unless these are lifted: the limits of the rule did not count
// for them. Requests of a key that are less than 50 ms apart may have the same time.
func Together(parts []Part, most int, lifted bool) Recent {
	found := Recent{To: parts[0].To}
	class, n := uint32(0), 0
	for i := range parts {
		class, n = max(class, parts[i].class), n+len(parts[i].entries)
		found.From = later(found.From, parts[i].From)
		if parts[i].To.Before(found.To) {
			found.To = parts[i].To
		}
	}
	found.KeyShare = share(class)
	entries := make([]entry, 0, n)
	for i := range parts {
		for _, e := range parts[i].entries {
			if e.key.class >= class {
				entries = append(entries, e)
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	found.take(entries, most, lifted)
	return found
}

// take takes the requests of entries, the latest first, until there are most.
func (f *Recent) take(entries []entry, most int, lifted bool) {
	total, first := 0, len(entries)
	last := f.To.UnixMicro()
	for ; first > 0 && entries[first-1].at >= f.From.UnixMicro(); first-- {
		e := &entries[first-1]
		if counts := e.counts(lifted); counts && total+int(e.n) > most {
			f.From = time.UnixMicro(e.at)
			if first < len(entries) {
				f.From = time.UnixMicro(entries[first].at)
			}
			break
		} else if counts {
			total += int(e.n)
		}
	}
	keys := map[string]bool{}
	f.Requests = make([]replay.Request, 0, total)
	for _, e := range entries[first:] {
		if e.at > last {
			break
		}
		if e.outcome.Denies() {
			f.DeniedBy.add(e.cause, int64(e.n))
		}
		if !e.counts(lifted) {
			f.Aside += int64(e.n)
			continue
		}
		keys[e.key.text] = true
		if e.outcome.Denies() {
			f.Denied += int64(e.n)
		}
		for range e.n {
			f.Requests = append(f.Requests,
				replay.Request{At: time.UnixMicro(e.at), Key: e.key.text, Cost: e.cost})
		}
	}
	f.Keys = len(keys)
}

// counts reports whether e is replayed.
func (e *entry) counts(lifted bool) bool {
	return lifted || e.cause != rules.ByBan && e.cause != rules.ByOverride
}

// share returns the share of keys that have at least a class.
func share(class uint32) float64 { return math.Ldexp(1, -int(class)) }
