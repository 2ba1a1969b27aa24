package gate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The ring beside a plain list of tokens, for passes that are recorded, postponed and
// forgotten at random.
func TestPassesBesideAList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const period = 1000
	var p history
	p.first, p.end, p.gone = 1<<32-100, 1<<32-100, 1<<64-1000 // positions and sums wrap around
	var list []int64
	now := int64(0)
	for range 200_000 {
		now += r.Int64N(20)
		p.forget(now, period)
		list = slices.DeleteFunc(list, func(at int64) bool { return now-at >= period })
		n := r.Int64N(3) + 1
		i := p.record(now, n, period)
		if r.IntN(4) == 0 {
			for range r.IntN(3) { // others pass in between
				now += r.Int64N(20)
				p.record(now, 1, period)
				list = append(list, now)
			}
			now += r.Int64N(1500) * int64(r.IntN(30)/29)
			if p.end-1 == i {
				now = max(now, p.slot(i).at) // the last entry is postponed as a whole
				for j, at := range list {
					if at == p.slot(i).at {
						list[j] = now
					}
				}
			}
			p.postpone(i, now, n, period)
		}
		for range n {
			list = append(list, now)
		}
		slices.Sort(list)
		if p.used() != int64(len(list)) {
			t.Fatalf("%d tokens held; want %d", p.used(), len(list))
		}
		if nth := r.IntN(len(list)); p.passedAt(int64(nth+1)) != list[nth] {
			t.Fatalf("token %d of %d passed at %d; want %d", nth+1, len(list),
				p.passedAt(int64(nth+1)), list[nth])
		}
	}
}

// A ring has a bound, and what that costs, too.
func TestPassesAreBounded(t *testing.T) {
	const period, apart, tokens = 1 << 40, 1 << 18, 1 << 22
	var p history
	for i := range int64(tokens) {
		p.record(i*apart, 1, period)
	}
	if len(p.ring) > 4*fineRing || p.used() != tokens {
		t.Errorf("%d tokens in a ring of %d; want %d in at most %d", p.used(), len(p.ring),
			tokens, 4*fineRing)
	}
	for i := int64(0); i < tokens; i += 97 {
		if late := p.passedAt(i+1) - i*apart; late < 0 || late > period/fineRing {
			t.Fatalf("token %d passed %d later than it did", i, late)
		}
	}
	p.forget(tokens*apart+period, period)
	if p.used() != 0 || p.ring != nil {
		t.Errorf("after a silent period %d tokens and a ring of %d are kept", p.used(), len(p.ring))
	}
}
