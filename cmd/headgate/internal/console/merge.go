package console

import (
	"context"
	"errors"
	"time"
)

// tick reads the counters if it is time, and sends what has changed.
func (r *runner) tick(now time.Time) {
	r.countDenied(now)
	if r.watched(now) || stepOf(now) > stepOf(r.sampler.read) {
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
	r.sampler.sample(now)
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

// join gives v a place, and what the others have seen already.
func (r *runner) join(v *viewer, now time.Time) bool {
	if len(r.viewers) >= r.handler.options.Viewers {
		return false
	}
	r.viewers[v] = struct{}{}
	if len(r.viewers) == 1 {
		r.begin(now)
	}
	for _, event := range [][]byte{r.history(), r.latest} {
		v.events <- event // there is room
	}
	return true
}

// begin makes the common history of what this instance knows.
func (r *runner) begin(now time.Time) {
	step := stepOf(now)
	r.common, r.merged, r.peers = newHistory(step), map[string]int64{}, map[string]peer{}
	r.sent = stepOf(now.Add(-lateSteps)) - 1
	r.past, r.decisions, r.failed = nil, nil, nil
	r.countDenied(now)
	if now.Sub(r.sampler.read) > fresh {
		r.sample(now)
	} else {
		r.show(now)
	}
	delete(r.merged, r.id) // the snapshot has the last steps only
	r.common = newHistory(step)
	r.mergeSteps(r.id, r.sampler.history.wire().steps())
	r.latest = r.state(now)
	r.due = true
}

// drop takes the place of v. With the last viewer, all that is for viewers goes.
func (r *runner) drop(v *viewer) {
	if _, ok := r.viewers[v]; !ok {
		return
	}
	delete(r.viewers, v)
	if len(r.viewers) == 0 {
		r.common, r.merged, r.peers = nil, nil, nil
		r.past, r.latest, r.decisions = nil, nil, nil
	}
}

// send sends an event to all viewers, and drops those that are too slow.
func (r *runner) send(event []byte) {
	if event == nil {
		return
	}
	for v := range r.viewers {
		select {
		case v.events <- event:
		default:
			close(v.events)
			r.drop(v)
		}
	}
}

// emit sends the steps that are over, and the state.
func (r *runner) emit(now time.Time) {
	if r.common == nil {
		return
	}
	last := stepOf(now.Add(-lateSteps)) - 1
	if last-r.sent > 2 { // the machine was suspended
		r.sent, r.past = last, nil
		r.send(r.history())
	}
	for r.sent < last && r.common != nil { // send may drop the last viewer
		r.sent++
		r.past, r.decisions = nil, nil
		r.send(r.handler.event(stepEvent, r.common.step(r.sent)))
	}
	if r.common != nil {
		r.latest = r.state(now)
		r.send(r.latest)
	}
}

// history returns the history event.
func (r *runner) history() []byte {
	if r.past == nil {
		r.past = r.handler.event(historyEvent, r.common.past(r.sent, r.common.decisions()))
	}
	return r.past
}

// state returns the state event.
func (r *runner) state(now time.Time) []byte {
	if r.decisions == nil {
		r.decisions = r.common.decisions()
	}
	var others []*snapshot
	for _, p := range r.peers {
		if now.Sub(p.heard) <= silence {
			others = append(others, p.snapshot)
		}
	}
	s := merge(&r.rules, r.own, others, r.decisions)
	if d := r.handler.denied.Load(); d != nil {
		s.DeniedSince = d.since.UnixMilli()
	}
	if r.failed != nil {
		s.Alone = whyAlone(r.failed)
	}
	o := r.handler.options
	s.Store.Kind, s.Store.Name, s.Store.State = "redis", o.StoreAs, r.own.Instance.Store
	s.Store.Then = o.WithoutStore()
	if o.Redis == nil {
		s.Store.Kind, s.Store.State = "memory", storeUp
	}
	return r.handler.event(stateEvent, s)
}

// whyAlone says why nothing could be exchanged.
func whyAlone(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the store did not answer in time"
	}
	return "the store does not answer: " + err.Error()
}

// outgoing returns what is to be exchanged, if it is time.
func (r *runner) outgoing(now time.Time) (out outgoing, ok bool) {
	if r.fleet == nil || !r.due || r.under || !r.watched(now) {
		return out, false
	}
	r.due, r.under = false, true
	out = outgoing{id: r.id, viewers: r.common != nil, snapshot: r.handler.encode(r.own)}
	if now.Sub(r.written) >= historyInterval {
		out.history, r.written = r.handler.encode(r.sampler.history.wire()), now
	}
	out.known = make(map[string]bool, len(r.merged))
	for id := range r.merged {
		out.known[id] = true
	}
	return out, true
}

// receive takes what the others show.
func (r *runner) receive(in incoming, now time.Time) {
	r.failed = in.err
	if in.err != nil {
		r.written = time.Time{}
	}
	if r.common == nil {
		return
	}
	r.learn(in, now)
	r.emit(now)
}

// watch notes that another instance has viewers.
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

// learn takes the snapshots and histories of others.
func (r *runner) learn(in incoming, now time.Time) {
	for id, w := range in.histories {
		r.mergeSteps(id, w.steps())
	}
	peers := make(map[string]peer, len(in.snapshots))
	for _, snap := range in.snapshots {
		p := peer{snap, now}
		if before, ok := r.peers[snap.ID]; ok && before.snapshot.Instance.At == snap.Instance.At {
			p.heard = before.heard
		}
		peers[snap.ID] = p
		if _, known := r.merged[snap.ID]; known {
			r.mergeSteps(snap.ID, snap.Steps)
		}
	}
	if in.err == nil {
		r.peers = peers
	}
	if len(in.histories) > 0 {
		r.past, r.decisions = nil, nil
		r.send(r.history())
	}
}
