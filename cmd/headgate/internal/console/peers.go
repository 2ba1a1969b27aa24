package console

import (
	"context"
	"errors"
	"maps"
	"time"
)

// outgoing returns what this instance sends to the others, if an exchange is due.
func (r *runner) outgoing(now time.Time) (out outgoing, ok bool) {
	if r.fleet == nil || !r.due || r.under || !r.watched(now) {
		return out, false
	}
	r.due, r.under, r.asked = false, true, now
	out = outgoing{id: r.id, viewers: r.common != nil, snapshot: encode(r.own)}
	if now.Sub(r.written) >= historyInterval {
		out.history, r.written = r.ownHistory(now, r.counters.history.newest-1), now
	}
	out.known, out.gone = maps.Clone(r.known), maps.Clone(r.gone)
	return out, true
}

// ownHistory returns the history of this instance up to a step.
func (r *runner) ownHistory(now time.Time, last int64) []byte {
	h := r.handler
	self := gone{h.instance, h.started.UnixMilli(), now.UnixMilli()}
	return encode(past{self, r.counters.history.used(last)})
}

// leave writes the history for those who look later.
func (r *runner) leave(ctx context.Context) {
	if r.fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	now := time.Now()
	r.counters.sample(now)
	// If it fails, the others know what it wrote last.
	_, _ = r.fleet.write(ctx, outgoing{id: r.id, history: r.ownHistory(now, stepOf(now))})
	_ = r.fleet.client.Del(ctx, r.fleet.prefix+"now:"+r.id).Err() // it decides no more
}

// receive stores the result of an exchange with the other instances.
func (r *runner) receive(in incoming, now time.Time) {
	r.failed = in.err
	if in.err != nil {
		r.written = time.Time{}
		if len(in.snapshots) == 0 {
			clear(r.known) // their histories fill the gap when they answer again
		}
	}
	if r.common == nil {
		return
	}
	r.learn(in, now)
	r.isWhole = r.isWhole || r.asked.Sub(r.begun) >= answered
	r.emit(now)
}

// watch records that another instance has viewers.
func (r *runner) watch(now time.Time) {
	if r.common != nil {
		return
	}
	began := !r.watched(now)
	r.remote = now.Add(watchedTTL)
	if began { // the others wait for the first snapshot
		r.countDenied(now)
		r.written, r.due = time.Time{}, true
		r.sample(now)
	}
}

// learn stores the snapshots and histories of other instances.
func (r *runner) learn(in incoming, now time.Time) {
	for id, one := range in.histories {
		r.known[id] = true
		r.mergeSteps(id, one.Steps)
		if in.silent[id] && one.Name != "" {
			one.At = max(one.At, r.peers[id].at())
			r.gone[id] = one.gone
		}
	}
	peers := make(map[string]peer, len(in.snapshots))
	for _, snap := range in.snapshots {
		peers[snap.ID] = r.peers[snap.ID].next(snap, now)
		delete(r.gone, snap.ID)
		if r.known[snap.ID] {
			r.mergeSteps(snap.ID, snap.Steps)
		}
	}
	if in.err == nil {
		r.peers = peers
	}
	if len(in.histories) > 0 {
		r.past = nil
		r.send(r.history())
	}
}

// mergeSteps adds the steps of an instance that are not in the common history yet.
func (r *runner) mergeSteps(id string, list []stepCounts) {
	for _, s := range list {
		step := s.At / int64(stepTime/time.Second)
		if last, known := r.merged[id]; !known || step > last {
			r.common.addStep(s)
			r.merged[id] = step
		}
	}
}

// whyAlone returns why the exchange failed.
func whyAlone(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the store did not answer in time"
	}
	return "the store does not answer: " + err.Error()
}
