package demo

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

const (
	// binWidth is the resolution of the timeline. It divides a second, so that the edges of most
	// windows are between two bins.
	binWidth = 200 * time.Millisecond

	// traceSpan is how much of the past is kept: what the page shows, and one second more.
	traceSpan = 16 * time.Second
)

// trace is what happened in a lane since the last reset. The page draws it and counts nothing
// itself, so every tab shows the same, also after a reload.
type trace struct {
	allowed, denied int64
	bins            map[int64]*bin // by the number of binWidths since 1970
}

// bin is what happened in one binWidth.
type bin struct {
	Start   int64   `json:"start"` // in milliseconds since 1970, by the clock of the store
	Allowed int64   `json:"allowed"`
	Denied  int64   `json:"denied"`
	At      float64 `json:"at"`    // when the level was seen last; 0 if it was not
	Level   float64 `json:"level"` // remaining tokens as a fraction of the capacity
}

func newTrace() *trace { return &trace{bins: map[int64]*bin{}} }

// bin returns the bin of a time of the store.
func (t *trace) bin(at time.Time) *bin {
	number := at.UnixMicro() / binWidth.Microseconds()
	b := t.bins[number]
	if b == nil {
		t.forget(at)
		b = &bin{Start: number * binWidth.Milliseconds()}
		t.bins[number] = b
	}
	return b
}

// add counts outcomes. ahead is how far the clock of the store is ahead of ours.
func (t *trace) add(outcomes []outcome, ahead time.Duration) {
	for _, o := range outcomes {
		b := t.bin(o.to.Add(ahead))
		if o.decision.Allowed() {
			t.allowed++
			b.Allowed++
		} else {
			t.denied++
			b.Denied++
		}
	}
}

// see records the level at a time of the store at which peeked was the decision.
func (t *trace) see(at time.Time, limit headgate.Limit, peeked headgate.Decision) {
	b := t.bin(at)
	b.At, b.Level = epoch(at), level(limit, peeked)
}

// level returns the remaining fraction of a limit. A token bucket also has parts of tokens, which
// the time until it is full tells.
func level(limit headgate.Limit, peeked headgate.Decision) float64 {
	level := float64(peeked.Remaining) / float64(max(limit.Capacity(), 1))
	if limit.Algorithm() == headgate.AlgorithmTokenBucket {
		periods := float64(peeked.ResetAfter) / float64(limit.Period())
		level = 1 - periods*float64(limit.Refill())/float64(limit.Capacity())
	}
	return min(1, max(0, level))
}

// forget drops the bins that are older than traceSpan, and those that are ahead of now because the
// clock of the store was set back.
func (t *trace) forget(now time.Time) {
	oldest, newest := now.Add(-traceSpan).UnixMilli(), now.Add(traceSpan).UnixMilli()
	for number, b := range t.bins {
		if b.Start < oldest || b.Start > newest {
			delete(t.bins, number)
		}
	}
}

// sorted returns the bins in the order of time.
func (t *trace) sorted() []bin {
	bins := make([]bin, 0, len(t.bins))
	for _, b := range t.bins {
		bins = append(bins, *b)
	}
	slices.SortFunc(bins, func(a, b bin) int { return cmp.Compare(a.Start, b.Start) })
	return bins
}
