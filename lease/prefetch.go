package lease

import (
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// held is what was prefetched of one key and limit. The row of its counter guards it.
type held struct {
	key   string
	limit headgate.Limit
	plan  plan

	batches [2]batch // the first is used first
	pending bool     // a prefetch is under way
	rest    int64    // there is none before this

	said  headgate.Decision // the last answer of the store
	asked int64             // when it was asked for
}

// batch is the tokens of one prefetch. They are used before end, in microseconds.
type batch struct{ tokens, size, end int64 }

func newHeld(r *headgate.Request, p plan) *held {
	// The key may be part of something large.
	return &held{key: strings.Clone(r.Key), limit: r.Limit, plan: p}
}

func (h *held) isOf(r *headgate.Request) bool {
	return h != nil && h.limit == r.Limit && h.key == r.Key
}

func (b *batch) left(now int64) int64 {
	if now >= b.end {
		return 0
	}
	return b.tokens
}

func (h *held) left(now int64) int64 {
	if h.batches[0].left(now) == 0 {
		h.batches = [2]batch{h.batches[1]}
	}
	return h.batches[0].left(now) + h.batches[1].left(now)
}

// spend uses cost tokens, if there are as many.
func (h *held) spend(cost, now int64) bool {
	if h.left(now) < cost {
		return false
	}
	first := min(cost, h.batches[0].left(now))
	h.batches[0].tokens -= first
	h.batches[1].tokens -= cost - first
	return true
}

func (h *held) add(b batch) {
	if h.batches[0].tokens == 0 {
		h.batches[0] = b
	} else {
		h.batches[1] = b
	}
}

// due reports whether a quarter of the tokens or of their time is left, and no others are coming.
func (h *held) due(now int64) bool {
	left, b := h.left(now), h.batches[0]
	return !h.pending && now >= h.rest && h.batches[1].left(now) == 0 &&
		(left <= b.size/4 || b.end-now < h.plan.ttl.Microseconds()/4)
}

// decision is that on a request which was granted by prefetched tokens.
func (h *held) decision(now int64) headgate.Decision {
	d := h.said
	d.Remaining = min(d.Remaining+h.left(now), h.limit.Capacity())
	d.ResetAfter = max(d.ResetAfter-time.Duration(now-h.asked)*time.Microsecond, 0)
	return d
}

// short returns how many tokens are probably to be drained now: taken without use, so that enough
// are missing from the bucket. See [plan.batch].
func (h *held) short(now int64) int64 {
	since := time.Duration(now-h.asked) * time.Microsecond
	missing := h.limit.Capacity() - h.said.Remaining - inflow(h.limit, since)
	return max(h.plan.inflow-max(missing, 0), 0)
}
