package envoy

import (
	"context"

	"github.com/headgate/headgate"
)

// plan counts the hits of each item and says what to ask the store for.
func (l *Limiter) plan(w *work) {
	keys := string(w.keys)
	for i := range w.items {
		it := &w.items[i]
		if it.rule == nil {
			continue
		}
		if it.cost > 0 {
			it.counters.TotalHits.Add(it.hits)
		}
		it.key = keys[it.keyFrom:it.keyTo]
		quota := it.rule.quota || l.options.QuotaMode
		it.together = l.options.StopWhenOverLimit && !quota && !it.rule.shadow &&
			it.cost >= 0 && !it.after
		if it.together {
			it.force, it.overdraws = false, false
		}
		it.cached = l.remembers(it)
		it.pending = !it.cached && (it.rule.most > 0 || !it.together)
		if it.together && !it.pending && it.cost > 0 {
			w.held = true
			w.recalled = w.recalled || it.cached
		}
	}
}

// remembers reports whether the local cache has it as over the limit.
func (l *Limiter) remembers(it *item) bool {
	if l.cache == nil || it.rule.window == 0 {
		return false
	}
	if it.cost < 0 {
		l.cache.forget(it.key, it.rule.window)
		return false
	}
	if l.cache.denies(it.key, it.rule.window, it.rule.most) {
		l.stats.LocalCacheHits.Add(1)
		return true
	}
	l.stats.LocalCacheMisses.Add(1)
	return false
}

// take asks the stores: in one round trip for each store, unless one request charges a counter
// twice, or has a limit that is neither forced nor goes with the others beside more of those.
func (l *Limiter) take(ctx context.Context, w *work) error {
	for _, second := range []bool{false, true} {
		for more := true; more; {
			var err error
			if more, err = l.round(ctx, w, second && l.perSecond != nil); err != nil {
				return err
			}
		}
		if l.perSecond == nil {
			return nil
		}
	}
	return nil
}

// round sends what can be sent together to one store. It returns whether there is more.
func (l *Limiter) round(ctx context.Context, w *work, second bool) (more bool, err error) {
	w.requests, w.sent = w.requests[:0], w.sent[:0]
	alone, joined := false, false
	for i := range w.items {
		it := &w.items[i]
		if !it.pending || l.perSecond != nil && it.rule.perSecond != second {
			continue
		}
		lone := !it.force && !it.together && it.cost > 0
		if lone && (alone || joined) || it.together && alone || w.has(it) {
			more = true
			continue
		}
		alone, joined = alone || lone, joined || it.together
		r := headgate.Request{Key: it.key, Limit: it.rule.limit, Cost: it.cost, Force: it.force}
		if it.together && w.held {
			r.Cost = 0
		}
		if r.Cost == 0 && it.rule.window > 0 && (it.cost == 0 || w.recalled) {
			it.peek, r.Limit = true, it.rule.windowOf(it.rule.most+1)
		}
		w.requests, w.sent = append(w.requests, r), append(w.sent, i)
	}
	store := l.store
	if second {
		store = l.perSecond
	}
	if err = w.send(ctx, store); err != nil {
		return false, err
	}
	again, err := l.settle(ctx, w)
	return more || again, err
}

// has reports whether the counter of it is in this round already.
func (w *work) has(it *item) bool {
	for i := range w.requests {
		if r := &w.requests[i]; r.Key == it.key && r.Limit.ID() == it.rule.limit.ID() {
			return true
		}
	}
	return false
}

// send has the store decide w.requests.
func (w *work) send(ctx context.Context, store headgate.Store) (err error) {
	switch len(w.requests) {
	case 0:
		w.decided = w.decided[:0]
		return nil
	case 1:
		var d headgate.Decision
		d, err = store.Take(ctx, w.requests[0])
		w.decided = append(w.decided[:0], d)
		return err
	}
	for len(w.decided) < len(w.requests) {
		w.decided = append(w.decided, headgate.Decision{})
	}
	w.decided = w.decided[:len(w.requests)]
	return store.TakeAll(ctx, w.requests, w.decided)
}

// settle assigns the decisions to the items, and reports whether one is asked again, by force. If
// an item of a group was denied, settle returns what earlier rounds charged for the group.
func (l *Limiter) settle(ctx context.Context, w *work) (again bool, err error) {
	denied := false
	for j, i := range w.sent {
		it := &w.items[i]
		it.pending, it.decision = false, w.decided[j]
		denied = denied || it.together && w.requests[j].Cost > 0 && !it.decision.Allowed()
	}
	for j, i := range w.sent {
		it := &w.items[i]
		granted := it.decision.Allowed() && (!denied || !it.together)
		it.charged = w.requests[j].Cost != 0 && (it.force || granted)
		if it.overdraws && !it.charged && it.decision.Remaining > 0 && it.cost > 0 {
			it.pending, it.force, again = true, true, true
		}
	}
	if !denied {
		return again, nil
	}
	w.held = true
	for i := range w.items {
		if it := &w.items[i]; it.together && it.charged {
			if err := l.refund(ctx, it); err != nil {
				return false, err
			}
		}
	}
	return again, nil
}

func (l *Limiter) refund(ctx context.Context, it *item) error {
	store := l.store
	if l.perSecond != nil && it.rule.perSecond {
		store = l.perSecond
	}
	r := headgate.Request{Key: it.key, Limit: it.rule.limit, Cost: -it.cost}
	var err error
	it.charged = false
	it.decision, err = store.Take(ctx, r)
	return err
}
