package replay

import (
	"context"
	"math"
	"slices"
)

// proposals are the names of the proposals, and the index of what each may deny.
var proposals = []struct {
	name  string
	share int
	rest  bool // of the requests of the keys that do not stand out
}{{"careful", 0, false}, {"balanced", 2, true}, {"tight", 3, true}}

// enough reports whether the span, without a long gap, holds at least 10 periods of f.
func (s *sizing) enough(f family) bool { return s.covered()/10 >= f.period }

// usable returns which periods the span is long enough for, or the first if it is for none.
func (s *sizing) usable(periods []family) (all []int) {
	for i, f := range periods {
		if s.enough(f) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return []int{0}
	}
	return all
}

// choose returns the period of the proposals: of those that are usable, that with the smallest
// product of burst and rate, where a burst of twice the size is worth it if it makes the rate less
// than half.
func (s *sizing) choose() int {
	chosen, least := 0, math.Inf(1)
	families := s.periods.families[:len(s.periods.needs)]
	for _, i := range s.usable(families) {
		size := float64(s.periods.result(s.periods.rest(i), proposals[1].share).size)
		if product := size * size / float64(families[i].period); product < least {
			chosen, least = i, product
		}
	}
	return chosen
}

// propose fills the proposals and what is known of each period.
func (s *sizing) propose(ctx context.Context) error {
	drafts := s.drafts()
	rest := s.listing(s.periods.result(s.periods.rest(s.chosen), 0).size)
	extra := []*probe{rest}
	for _, d := range drafts {
		extra = append(extra, d.probe)
	}
	if err := s.periods.walk(ctx, extra); err != nil {
		return err
	}
	fits := s.fits(s.periods)
	s.report.Periods = fits
	keys := s.standOutKeys(len(drafts))
	for i, d := range drafts {
		d.proposal.Result = s.result(d.probe)
		for _, k := range d.probe.keys {
			if at := slices.Index(s.standOut, k.key); at >= 0 {
				keys[at].Denied[i] = k.denied
				continue
			}
			d.proposal.RestDenied += k.denied
			d.proposal.RestDeniedKeys++
		}
		s.report.Proposals = append(s.report.Proposals, d.proposal)
	}
	if len(keys) > 0 {
		s.report.StandOut = &StandOut{
			Period: fits[s.chosen].Period, Rest: s.result(rest), Keys: keys,
		}
	}
	return nil
}

// draft is a proposal before it is counted.
type draft struct {
	proposal Proposal
	probe    *probe
}

// drafts returns the proposals, without what they deny.
func (s *sizing) drafts() (drafts []draft) {
	basis := s.periods.rest(s.chosen)
	for _, p := range proposals {
		from := s.chosen
		if p.rest {
			from = basis
		}
		drafts = append(drafts, draft{Proposal{
			Name: p.name, OfRest: from != s.chosen,
			MaxShare: s.periods.targets[s.chosen][p.share].share,
		}, s.listing(s.periods.result(from, p.share).size)})
	}
	return drafts
}

// listing makes a probe of the chosen period that keeps what it denies by key.
func (s *sizing) listing(size int64) *probe {
	p := s.periods.probe(s.chosen, size)
	p.list = true
	return p
}

// result returns what a probe found, as a replay reports it.
func (s *sizing) result(p *probe) Result {
	numbers := Result{
		Limit:  s.periods.families[p.family].limit(p.size),
		Denied: p.denied, DeniedKeys: p.deniedKeys, Skipped: s.report.Skipped,
	}
	return s.count.result(numbers, s.config.Top, slices.Values(p.keys))
}
