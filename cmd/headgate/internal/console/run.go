package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
)

// interval is how often the counters are read while an instance has viewers. Without viewers, they
// are read once in a step.
const interval = time.Second

// How old things may be.
const (
	lateSteps = 2 * time.Second        // of other instances, before a step is sent
	silence   = 3 * time.Second        // of an instance, before it does not count any more
	fresh     = 500 * time.Millisecond // a reading, for the first viewer

	// answered is the time until all other instances have noticed the first viewer.
	answered = overrides.Interval + 100*time.Millisecond
)

// runner is the state of the goroutine that reads, exchanges and sends.
type runner struct {
	handler  *Handler
	id       string
	counters *counterReader
	rules    ruleList
	fleet    *fleet // nil in memory

	viewers map[*viewer]struct{}
	own     *snapshot
	latest  []byte // the last state event
	past    []byte // the history event; nil: not encoded yet

	common  *history         // of all instances; nil: there are no viewers
	merged  map[string]int64 // the last step of each instance in it
	known   map[string]bool  // the instances whose histories are in it
	gone    map[string]gone  // those of them that have stopped, by their ids
	sent    int64            // the last step that was sent
	begun   time.Time        // when the first viewer came
	isWhole bool             // the others have had the time to answer; no state is sent before

	peers     map[string]peer
	remote    time.Time // until then, another instance has viewers
	looked    time.Time // when an instance had viewers last
	written   time.Time // when the history was
	exchanges chan incoming
	due       bool      // an exchange is to begin
	under     bool      // one is under way
	asked     time.Time // when the last one began
	failed    error     // of the last one
	isSlow    bool      // the store, for the viewers
	without   int64     // when many decisions without the store were shown last, in milliseconds
}

// peer is another instance.
type peer struct {
	snapshot *snapshot
	heard    time.Time // when that was new
	ahead    []int64   // by how many milliseconds the last snapshots were ahead of this clock
}

// How many snapshots say how far a clock is off, and from when on it is: a snapshot is up to a
// second old, and may have been late.
const (
	clockSnapshots = 5
	clockAhead     = 2 * time.Second
	clockBehind    = -3 * time.Second
)

func (p peer) at() int64 {
	if p.snapshot == nil {
		return 0
	}
	return p.snapshot.Instance.At
}

// next returns p after it has sent snap.
func (p peer) next(snap *snapshot, now time.Time) peer {
	if p.snapshot != nil && p.at() == snap.Instance.At {
		snap.ahead = p.snapshot.ahead
		return peer{snap, p.heard, p.ahead}
	}
	ahead := append(slices.Clip(p.ahead), snap.Instance.At-now.UnixMilli())
	ahead = ahead[max(0, len(ahead)-clockSnapshots):]
	most := time.Duration(slices.Max(ahead)) * time.Millisecond
	if len(ahead) == clockSnapshots && (most > clockAhead || most < clockBehind) {
		snap.ahead = most.Milliseconds()
	}
	return peer{snap, now, ahead}
}

// Run reads the counters, and sends events to the viewers, until ctx ends. Then all viewers are
// disconnected. Call it once.
func (h *Handler) Run(ctx context.Context) {
	r := &runner{
		handler: h, id: h.id, fleet: h.fleet, rules: ruleList{handler: h},
		counters: newCounterReader(h.options.Metrics, h.options.Statistics, time.Now()),
		viewers:  map[*viewer]struct{}{}, exchanges: make(chan incoming, 1),
	}
	r.sample(time.Now())
	var exchanging sync.WaitGroup
	defer func() {
		for v := range r.viewers {
			close(v.events)
		}
		exchanging.Wait()
		r.leave(ctx)
		close(h.ended)
	}()
	timer := time.NewTimer(untilTick(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			r.tick(time.Now())
			timer.Reset(untilTick(time.Now()))
		case j := <-h.joins:
			j.joined <- r.join(j.viewer, time.Now())
		case v := <-h.leaves:
			r.drop(v)
		case <-h.watched:
			r.watch(time.Now())
		case in := <-r.exchanges:
			r.under = false
			r.receive(in, time.Now())
		}
		if out, ok := r.outgoing(time.Now()); ok {
			exchanging.Go(func() { r.exchanges <- r.fleet.exchange(ctx, out) })
		}
	}
}

// untilTick returns the time to the next full second, or to the one after it if that is near.
func untilTick(now time.Time) time.Duration {
	left := now.Truncate(interval).Add(interval).Sub(now)
	if left < interval/10 {
		left += interval
	}
	return left
}

// tick reads the counters if it is time, and sends what has changed.
func (r *runner) tick(now time.Time) {
	r.countDenied(now)
	if r.watched(now) || stepOf(now) > stepOf(r.counters.read) {
		r.sample(now)
	}
	if r.fleet == nil || r.under {
		r.emit(now)
	} // otherwise the merge sends it, after the other instances have answered
	r.due = true
}

// watched reports whether any instance has a viewer.
func (r *runner) watched(now time.Time) bool { return r.common != nil || now.Before(r.remote) }

// countDenied counts denied keys while an instance has viewers. It stops some seconds after the
// last has left, so that a page that is reloaded keeps its counts.
func (r *runner) countDenied(now time.Time) {
	denied := &r.handler.denied
	if r.watched(now) {
		r.looked = now
		if denied.Load() == nil {
			denied.Store(newDeniedKeys(now))
		}
	} else if now.Sub(r.looked) > watchedTTL {
		denied.Store(nil)
	}
}

// sample reads the counters, and makes the snapshot if any instance has a viewer.
func (r *runner) sample(now time.Time) {
	r.counters.sample(now)
	if d := r.handler.denied.Load(); d != nil {
		d.tick(now)
	}
	if r.watched(now) {
		r.show(now)
	}
}

// show makes the snapshot of this instance.
func (r *runner) show(now time.Time) {
	r.rules.refresh()
	r.own = r.snapshot()
	if r.common != nil {
		r.common.advance(stepOf(now))
		r.mergeSteps(r.id, r.own.Steps)
	}
}
