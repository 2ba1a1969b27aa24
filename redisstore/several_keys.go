package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

func oneKey(rs []headgate.Request) bool {
	for _, r := range rs[1:] {
		if r.Key != rs[0].Key {
			return false
		}
	}
	return true
}

// keyGroup is the requests of a group that have one key, and their indices in it.
type keyGroup struct {
	indices   []int
	requests  []headgate.Request
	decisions []headgate.Decision
	mode      mode
}

// byKey splits rs by key, in order of first appearance: the forced ones, and the others. Cancels
// come after charges, and refunds last. The store may refuse a cancel but never a refund, so no
// refund has to be undone.
func byKey(rs []headgate.Request) (forced, others []*keyGroup) {
	const force, cost, cancel, refund = 0, 1, 2, 3
	type part struct {
		key  string
		kind int
	}
	var kinds [4][]*keyGroup
	of := make(map[part]*keyGroup)
	for i, r := range rs {
		p := part{r.Key, cost}
		switch {
		case r.Forced():
			p.kind = force
		case r.Cost < 0 && r.Start != nil && !r.Start.IsZero():
			p.kind = cancel
		case r.Cost < 0:
			p.kind = refund
		}
		g := of[p]
		if g == nil {
			g = &keyGroup{mode: settle}
			of[p] = g
			kinds[p.kind] = append(kinds[p.kind], g)
		}
		g.indices = append(g.indices, i)
		g.requests = append(g.requests, r)
		g.decisions = append(g.decisions, headgate.Decision{})
	}
	slices.Concat(kinds[:]...)[0].mode = charge // the queue lets the first one in, or none
	return kinds[force], slices.Concat(kinds[cost:]...)
}

// takeForced takes groups that do not depend on each other, all in one trip. If the queue refuses
// the first, none is sent.
func (s *Store) takeForced(ctx context.Context, all []*keyGroup) error {
	calls, queues := make([]*call, len(all)), make([]*queue, len(all))
	mustSend, errs := make([]bool, len(all)), make([]error, len(all))
	for i, g := range all {
		calls[i] = s.newCall(g.requests, g.mode)
		queues[i] = s.queue(calls[i].names[0]) //nolint:contextcheck // as in decideTogether
		mustSend[i], errs[i] = queues[i].join(ctx, calls[i])
		if errs[0] != nil {
			break
		}
	}
	for i := range all {
		if mustSend[i] {
			go queues[i].run() //nolint:contextcheck // as in queue.do
		}
	}
	if errs[0] != nil {
		return errs[0]
	}
	for i, g := range all {
		if errs[i] == nil {
			errs[i] = queues[i].wait(ctx, calls[i])
		}
		if errs[i] == nil {
			errs[i] = s.explain(calls[i].take(g.requests, g.decisions))
		}
	}
	return s.ofSome(errs)
}

// ofSome is the first error of calls of one group. Unless none was sent, it is not [ErrNotSent].
func (s *Store) ofSome(errs []error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	sent := func(err error) bool { return !errors.Is(err, ErrNotSent) }
	left, is := errors.AsType[*notSentError](errs[i])
	if is && slices.ContainsFunc(errs, sent) {
		return s.explain(left.err)
	}
	return errs[i]
}

// takeMultiKey takes the groups one after the other. If one denies, or fails, what was taken before
// is refunded, and the others are peeked at. A caller whose context ends leaves at once, and what
// was taken is refunded in the background.
func (s *Store) takeMultiKey(ctx context.Context, all []*keyGroup) error {
	if err := ctx.Err(); err != nil {
		s.stats.notSent.Add(1)
		return &notSentError{err}
	}
	return s.explain(redisscript.Await(ctx, func() error { return s.takeGroups(ctx, all) }))
}

func (s *Store) takeGroups(ctx context.Context, all []*keyGroup) error {
	whole := context.WithoutCancel(ctx) // each call is waited for, to know what to refund
	for i, g := range all {
		err := ctx.Err()
		if err == nil {
			err = s.decideTogether(whole, g.requests, g.decisions, g.mode)
		}
		if err == nil && headgate.Granted(g.requests, g.decisions) {
			continue
		}
		err = errors.Join(err, s.refund(whole, all[:i]))
		if err != nil {
			return err // a call that failed may have charged its own key
		}
		return s.peekAt(whole, slices.Delete(slices.Clone(all), i, i+1))
	}
	return nil
}

// refund refunds what the groups have taken. It charges the cost of a cancel again, which may be
// more than it gave back, even if that does not fit any more: the caller keeps its start time.
func (s *Store) refund(ctx context.Context, taken []*keyGroup) error {
	var all error
	for _, g := range taken {
		back := slices.Clone(g.requests)
		for i := range back {
			back[i].Cost, back[i].Start, back[i].Force = -back[i].Cost, nil, true
			back[i].Headroom = 0
		}
		err := s.decideTogether(ctx, back, make([]headgate.Decision, len(back)), settle)
		all = errors.Join(all, err)
	}
	return all
}

// peekAt fills the decisions of the groups without charging them.
func (s *Store) peekAt(ctx context.Context, groups []*keyGroup) error {
	for _, g := range groups {
		if err := s.decideTogether(ctx, g.requests, g.decisions, peek); err != nil {
			return err
		}
	}
	return nil
}
