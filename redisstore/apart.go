package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

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

// party is the requests of a group that have one key, and their places in it.
type party struct {
	places    []int
	requests  []headgate.Request
	decisions []headgate.Decision
	mode      mode
}

// apartHold is for how long, at least, what was taken can be given back.
const apartHold = 2 * time.Second

// parties parts rs by key, in order of first appearance. What all but the last take can be given
// back as if it had never been taken; when the last is granted, so are all, and nothing is to be
// given back any more.
func parties(rs []headgate.Request) []*party {
	var all []*party
	byKey := make(map[string]*party)
	for i, r := range rs {
		p := byKey[r.Key]
		if p == nil {
			p = new(party)
			byKey[r.Key] = p
			all = append(all, p)
		}
		p.places = append(p.places, i)
		p.requests = append(p.requests, r)
		p.decisions = append(p.decisions, headgate.Decision{})
	}
	for _, p := range all[1:] {
		p.mode = settle // the first has let them in
	}
	for _, p := range all[:len(all)-1] {
		p.hold()
	}
	return all
}

// hold makes the requests of p such that they can be given back.
func (p *party) hold() {
	ticket := rand.Uint64() | 1
	for i := range p.requests {
		r := &p.requests[i]
		if r.Cost <= 0 {
			continue
		}
		r.Hold = max(r.Hold, apartHold)
		if r.Ticket == 0 {
			r.Ticket = ticket
		}
	}
}

// takeApart takes rs key after key. If one refuses, or cannot say, what was taken
// before is given back, and the others are asked how they stand. A caller whose context
// ends leaves at once, and what was taken is given back behind it.
func (s *Store) takeApart(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := ctx.Err(); err != nil {
		s.stats.notSent.Add(1)
		return notSent(err)
	}
	all := parties(rs)
	if err := redisscript.Await(ctx, func() error { return s.takeParties(ctx, all) }); err != nil {
		return s.dialErrors.explain(ctx, s.explain(err))
	}
	for _, p := range all {
		for j, place := range p.places {
			ds[place] = p.decisions[j]
		}
	}
	return nil
}

func (s *Store) takeParties(ctx context.Context, all []*party) error {
	whole := context.WithoutCancel(ctx) // each call is waited for, to know what to give back
	for i, p := range all {
		err := ctx.Err()
		if err == nil {
			err = s.decideTogether(whole, p.requests, p.decisions, p.mode)
		}
		if err == nil && p.granted() {
			continue
		}
		if err != nil {
			return errors.Join(err, s.giveBack(whole, all[:min(i+1, len(all)-1)])) // this one may have been taken
		}
		if err := s.giveBack(whole, all[:i]); err != nil {
			return err
		}
		return s.look(whole, slices.Delete(slices.Clone(all), i, i+1))
	}
	return nil
}

// giveBack undoes the charges of the given parties.
func (s *Store) giveBack(ctx context.Context, taken []*party) error {
	var all error
	for _, p := range taken {
		back := slices.Clone(p.requests)
		for i := range back {
			back[i].Cost, back[i].Hold = -back[i].Cost, 0
		}
		all = errors.Join(all, s.decideTogether(ctx, back, make([]headgate.Decision, len(back)), settle))
	}
	return all
}

// look fills the decisions of the given parties without charging them.
func (s *Store) look(ctx context.Context, parties []*party) error {
	for _, p := range parties {
		if err := s.decideTogether(ctx, p.requests, p.decisions, peek); err != nil {
			return err
		}
	}
	return nil
}

// granted says whether every request of p was.
func (p *party) granted() bool {
	for i, d := range p.decisions {
		if !d.Allowed() && p.requests[i].Cost != 0 {
			return false
		}
	}
	return true
}
