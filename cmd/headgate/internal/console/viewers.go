package console

import (
	"cmp"
	"slices"
	"time"
)

// join adds v, and sends it the history and the newest state. It reports false if there is no room.
func (r *runner) join(v *viewer, now time.Time) bool {
	if len(r.viewers) >= r.handler.options.Viewers {
		return false
	}
	r.viewers[v] = struct{}{}
	if len(r.viewers) == 1 {
		r.begin(now)
	}
	v.events <- r.history() // there is room
	if r.isWhole {
		v.events <- r.latest
	}
	return true
}

// begin makes the common history from the counts of this instance.
func (r *runner) begin(now time.Time) {
	step := stepOf(now)
	r.common, r.merged, r.peers = newHistory(step), map[string]int64{}, map[string]peer{}
	r.known, r.gone = map[string]bool{}, map[string]gone{}
	r.sent = stepOf(now.Add(-lateSteps)) - 1
	r.past, r.failed = nil, nil
	r.begun, r.isWhole = now, r.fleet == nil
	r.countDenied(now)
	if now.Sub(r.counters.read) > fresh {
		r.sample(now)
	} else {
		r.show(now)
	}
	delete(r.merged, r.id) // the snapshot has the last steps only
	r.common = newHistory(step)
	r.mergeSteps(r.id, r.counters.history.used(r.counters.history.newest-1))
	r.latest = r.state(now)
	r.due = true
}

// drop removes v. After the last viewer, it drops all data that is kept for viewers.
func (r *runner) drop(v *viewer) {
	if _, ok := r.viewers[v]; !ok {
		return
	}
	delete(r.viewers, v)
	if len(r.viewers) == 0 {
		r.common, r.merged, r.peers = nil, nil, nil
		r.past, r.latest = nil, nil
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
		r.past = nil
		r.send(event(stepEvent, r.common.step(r.sent)))
	}
	if r.common != nil && r.isWhole {
		r.latest = r.state(now)
		r.send(r.latest)
	}
}

// history returns the history event.
func (r *runner) history() []byte {
	if r.past == nil {
		r.past = event(historyEvent, pastEvent{int64(stepTime.Seconds()), r.common.upTo(r.sent)})
	}
	return r.past
}

// state returns the state event.
func (r *runner) state(now time.Time) []byte {
	var others []*snapshot
	for _, p := range r.peers {
		if now.Sub(p.heard) <= silence {
			others = append(others, p.snapshot)
		}
	}
	r.own.Instance.Store = r.storeState(nil) // there may have been an exchange
	s := merge(&r.rules, r.own, others, r.common.decisions())
	s.Gone = []gone{}
	for _, g := range r.gone {
		if g.At > now.Add(-steps*stepTime).UnixMilli() {
			s.Gone = append(s.Gone, g)
		}
	}
	slices.SortFunc(s.Gone, func(a, b gone) int { return cmp.Compare(a.At, b.At) })
	if d := r.handler.denied.Load(); d != nil {
		s.DeniedSince = d.since.UnixMilli()
	}
	if r.failed != nil {
		s.Alone = whyAlone(r.failed)
	}
	o := r.handler.options
	s.Store.Kind, s.Store.Name = "redis", o.StoreAs
	areMany := func(r ruleState) bool { return r.Degraded > 0.05*(r.Allowed+r.Denied) }
	if slices.ContainsFunc(s.Rules, areMany) {
		r.without = s.At
	}
	s.Store.State = r.storeState(s.Store.P50)
	r.isSlow = s.Store.State == storeSlow
	s.Store.Then = o.WithoutStore()
	s.Store.KnowsInstances = r.handler.loaded.Load().config.Instances > 0
	if o.Redis == nil {
		s.Store.Kind, s.Store.State = "memory", storeUp
	}
	return event(stateEvent, s)
}
