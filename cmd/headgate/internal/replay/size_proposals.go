package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

// proposals are the names of the proposals, and the index of what each may deny.
var proposals = []struct {
	name  string
	share int
	rest  bool // of the requests of the keys that do not stand out
}{{"careful", 0, false}, {"balanced", 2, true}, {"tight", 3, true}}

// enough reports whether the span, without a long gap, holds at least 10 periods of f.
func (s *sizing) enough(f family) bool { return s.covered()/10 >= f.period }

// choose returns the period of the proposals: of those that the span is long enough for, that with
// the smallest product of burst and rate, where a burst of twice the size is worth it if it makes
// the rate less than half. It is the first period if the span is too short for all.
func (s *sizing) choose() int {
	chosen, least := 0, math.Inf(1)
	for i, f := range s.periods.families[:len(s.periods.needs)] {
		if !s.enough(f) {
			continue
		}
		size := float64(s.periods.result(s.basis(i), proposals[1].share).size)
		if product := size * size / float64(f.period); product < least {
			chosen, least = i, product
		}
	}
	return chosen
}

// basis returns the family that proposals are taken from, for period i: that with the keys that
// stand out set aside, unless the number of denied keys is bounded.
func (s *sizing) basis(i int) int {
	if s.config.DenyKeys != nil {
		return i
	}
	return s.periods.rest(i)
}

// propose fills the proposals and what is known of each period.
func (s *sizing) propose(ctx context.Context) error {
	drafts := s.drafts()
	rest := s.listing(s.periods.result(s.periods.rest(s.chosen), 0).size)
	extra := []*probe{rest}
	for _, d := range drafts {
		extra = append(extra, d.probe)
	}
	fits, err := s.fits(ctx, s.periods, extra)
	if err != nil {
		return err
	}
	s.report.Periods = fits
	far := s.farKeys(len(drafts))
	for i, d := range drafts {
		d.proposal.Result = s.result(d.probe)
		for _, k := range d.probe.keys {
			if at := slices.Index(s.far, k.key); at >= 0 {
				far[at].Denied[i] = k.denied
				continue
			}
			d.proposal.RestDenied += k.denied
			d.proposal.RestDeniedKeys++
		}
		s.report.Proposals = append(s.report.Proposals, d.proposal)
	}
	if len(far) > 0 {
		s.report.StandOut = &StandOut{
			Period: fits[s.chosen].Period, Rest: s.result(rest), Keys: far,
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
	basis, between := s.basis(s.chosen), s.between()
	for _, p := range proposals {
		from := s.chosen
		if p.rest {
			from = basis
		}
		if p.rest && between > 0 {
			p := Proposal{Name: "between", OfRest: true}
			drafts = append(drafts, draft{p, s.listing(between)})
			between = 0
		}
		drafts = append(drafts, draft{Proposal{
			Name: p.name, OfRest: from != s.chosen,
			MaxShare: s.periods.targets[s.chosen][p.share].share,
		}, s.listing(s.periods.result(from, p.share).size)})
	}
	return drafts
}

// between returns a size that denies only the keys furthest from the rest: those above the largest
// gap among the keys that stand out. It is 0 if no gap is of three times.
func (s *sizing) between() (size int64) {
	if s.config.DenyKeys != nil || len(s.far) == 0 {
		return 0
	}
	var needs []int64
	for _, k := range s.far {
		needs = append(needs, int64(s.periods.needs[s.chosen][k]))
	}
	slices.Sort(needs)
	rest := s.periods.result(s.periods.rest(s.chosen), 0).size
	gap := float64(farGap)
	for i, below := range needs[:len(needs)-1] {
		exact := s.periods.families[s.chosen].exact(below)
		if ratio := float64(needs[i+1]) / float64(exact); exact > rest && ratio >= gap {
			gap, size = ratio, exact
		}
	}
	return size
}

// listing makes a probe of the chosen period that keeps what it denies by key.
func (s *sizing) listing(size int64) *probe {
	p := s.periods.probe(s.chosen, size)
	p.list = true
	return p
}

// result returns what a probe found, as a replay reports it.
func (s *sizing) result(p *probe) Result {
	sortDenied(p.keys, s.names)
	r := Result{
		Limit:      s.periods.families[p.family].limit(p.size),
		Requests:   s.requests,
		Allowed:    s.requests - p.denied,
		Denied:     p.denied,
		Keys:       s.report.Keys,
		DeniedKeys: p.deniedKeys,
		Skipped:    s.report.Skipped,
		Top:        []TopDenied{},
	}
	for _, d := range p.keys[:min(s.top, len(p.keys))] {
		r.Top = append(r.Top, TopDenied{
			Key:      LogKey(s.names.keys[d.key]),
			Requests: s.asked[d.key],
			Denied:   d.denied,
			Share:    float64(d.denied) / float64(p.denied),
		})
	}
	return r
}

// curvePoints is about how many limits make a curve.
const curvePoints = 16

// fits returns what a search found, with curves. It runs extra probes in the same walk.
func (s *sizing) fits(
	ctx context.Context, found *search, extra []*probe,
) ([]SmallestLimits, error) {
	all := slices.Clone(extra)
	curves := make([][]*probe, len(found.needs))
	for i := range found.needs {
		for _, size := range found.curve(i) {
			curves[i] = append(curves[i], found.probe(i, size))
		}
		all = append(all, curves[i]...)
	}
	if err := found.walk(ctx, all); err != nil {
		return nil, err
	}
	fits := []SmallestLimits{}
	for i, f := range found.families[:len(found.needs)] {
		fit := SmallestLimits{
			Period: f.text(), Enough: s.enough(f), Fits: found.fitted(i), Curve: []TriedLimit{},
			Needs: count125(found.needs[i]),
		}
		if f.rate > 0 {
			fit.Rate, _, _ = strings.Cut(f.limit(1).String(), " burst")
		}
		if len(found.far) > 0 {
			fit.Rest = found.fitted(found.rest(i))
		}
		for _, p := range curves[i] {
			fit.Curve = append(fit.Curve, p.point(f))
		}
		fits = append(fits, fit)
	}
	return fits, nil
}

// fitted returns the results of family i.
func (s *search) fitted(i int) (fits []SmallestLimit) {
	for j, t := range s.targets[i] {
		fitted := SmallestLimit{MaxShare: t.share}
		if p := s.result(i, j); p != nil {
			point := p.point(s.families[i])
			fitted.Point = &point
		}
		fits = append(fits, fitted)
	}
	return fits
}

func (p *probe) point(f family) TriedLimit {
	return TriedLimit{f.limit(p.size), p.size, p.denied, p.deniedKeys}
}

// curve returns sizes of family i to draw: from a quarter of that of the largest target to that
// which denies nothing, evenly on a scale of logarithms.
func (s *search) curve(i int) (sizes []int64) {
	f, brackets := s.families[i], slices.Clone(s.brackets[i])
	if len(s.far) > 0 {
		brackets = append(brackets, s.brackets[s.rest(i)]...)
	}
	low, high := brackets[0].high, brackets[0].high
	for _, b := range brackets {
		low = min(low, b.high)
		sizes = append(sizes, f.exact(b.high))
	}
	low = max(low/4, 1)
	for j := range curvePoints {
		part := float64(j) / (curvePoints - 1)
		size := float64(low) * math.Pow(float64(high)/float64(low), part)
		sizes = append(sizes, f.exact(int64(size+0.5)))
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// count125 counts keys by what they need, in steps of 1, 2, 5, 10.
func count125(needs []uint32) []KeysByNeed {
	counts := []KeysByNeed{{From: 1, To: 1}}
	for most := int64(slices.Max(needs)); counts[len(counts)-1].To < most; {
		last := counts[len(counts)-1].To
		next := 2 * last
		for power := int64(1); power <= last; power *= 10 {
			if last == 2*power {
				next = 5 * power
			}
		}
		counts = append(counts, KeysByNeed{From: last + 1, To: next})
	}
	for _, n := range needs {
		i, _ := slices.BinarySearchFunc(counts, int64(n), func(c KeysByNeed, n int64) int {
			return cmp.Compare(c.To, n)
		})
		counts[i].Keys++
	}
	return counts
}
