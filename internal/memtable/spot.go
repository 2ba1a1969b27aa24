package memtable

import "github.com/headgate/headgate/internal/algorithm"

// Spot is where a request of a group is decided, and when.
type Spot struct {
	*Shard

	Rule   *algorithm.Rule
	Own, H uint64 // H differs from Own for a new key in a full store
	Order  algorithm.Order
}

// Decide decides the request of p, whose start is not before the wait of its group, and charges it
// if charge is set.
func (p *Spot) Decide(wait int64, charge bool) algorithm.Verdict {
	o := p.Order
	if wait > 0 && o.Cost > 0 {
		o.After = o.Now + wait
	}
	v := p.Take(p.Rule, p.H, o, charge)
	if charge && p.H != p.Own && o.Cost > 0 {
		p.Shared(p.Own)
	}
	return v
}

// Clash reports whether the accounts of two requests, which new keys of a full store share, are
// one. If both are forced, they are decided one after the other; others would be decided without
// the charge of a request of the group.
func Clash(spots []Spot) bool {
	type slot struct {
		shard *Shard
		h     uint64
	}
	seen := make(map[slot]bool, len(spots)) // whether it is forced
	for i := range spots {
		p := &spots[i]
		from := slot{p.Shard, p.H}
		if p.H == p.Own {
			from.h = p.Begins(p.Rule, p.H)
		}
		if forced, taken := seen[from]; taken && (!forced || !p.Order.Force) {
			return true
		}
		seen[from] = p.Order.Force
	}
	return false
}
