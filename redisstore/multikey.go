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

// byKey splits rs by key, in order of first appearance. Refunds come last: they are never
// denied, so none of them has to be undone.
func byKey(rs []headgate.Request) []*keyGroup {
	type part struct {
		key     string
		refunds bool
	}
	var grants, refunds []*keyGroup
	of := make(map[part]*keyGroup)
	for i, r := range rs {
		p := part{r.Key, r.Cost < 0}
		g := of[p]
		if g == nil {
			g = new(keyGroup)
			of[p] = g
			if p.refunds {
				refunds = append(refunds, g)
			} else {
				grants = append(grants, g)
			}
		}
		g.indices = append(g.indices, i)
		g.requests = append(g.requests, r)
		g.decisions = append(g.decisions, headgate.Decision{})
	}
	all := slices.Concat(grants, refunds)
	for _, g := range all[1:] {
		g.mode = settle // the queue has let the first one in
	}
	return all
}

// takeMultiKey takes rs key after key. If one denies, or fails, what was taken before is
// refunded, and the others are peeked at. A caller whose context ends leaves at once, and what
// was taken is refunded in the background.
func (s *Store) takeMultiKey(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if err := ctx.Err(); err != nil {
		s.stats.notSent.Add(1)
		return notSent(err)
	}
	all := byKey(rs)
	if err := redisscript.Await(ctx, func() error { return s.takeGroups(ctx, all) }); err != nil {
		return s.explain(err)
	}
	for _, g := range all {
		for j, i := range g.indices {
			ds[i] = g.decisions[j]
		}
	}
	return nil
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

// refund refunds what the groups have taken.
func (s *Store) refund(ctx context.Context, taken []*keyGroup) error {
	var all error
	for _, g := range taken {
		back := slices.Clone(g.requests)
		for i := range back {
			back[i].Cost, back[i].Start = -back[i].Cost, nil
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
