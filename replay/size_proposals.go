package replay

import (
	"context"
	"math"
	"slices"
	"strings"
)

// proposals are the names of the proposals, and the index of what each may deny.
var proposals = []struct {
	name  string
	share int
}{{"careful", 0}, {"balanced", 2}, {"tight", 3}}

// enough reports whether the span holds at least 10 periods of f.
func (s *sizing) enough(f family) bool { return (s.to-s.from)/10 >= f.period }

// choose returns the period of the proposals: of those that the span is long enough for, that with
// the smallest product of burst and rate, where a burst of twice the size is worth it if it makes
// the rate less than half. It is the first period if the span is too short for all.
func (s *sizing) choose() int {
	chosen, least := 0, math.Inf(1)
	for i, f := range s.periods.families {
		p := s.periods.result(i, proposals[1].share)
		if !s.enough(f) {
			continue
		}
		if product := float64(p.size) * float64(p.size) / float64(f.period); product < least {
			chosen, least = i, product
		}
	}
	return chosen
}

// propose fills the proposals and what is known of each period.
func (s *sizing) propose(ctx context.Context) error {
	var extra []*probe
	for _, p := range proposals {
		extra = append(extra, s.listing(s.periods.result(s.chosen, p.share).size))
	}
	far, rest := farthest(s.periods.needs[s.chosen])
	if len(far) > 0 {
		extra = append(extra, s.listing(s.periods.families[s.chosen].exact(rest)))
	}
	fits, err := s.fits(ctx, s.periods, extra)
	if err != nil {
		return err
	}
	s.report.Periods = fits
	for i, p := range proposals {
		s.report.Proposals = append(s.report.Proposals,
			Proposal{p.name, s.periods.targets[p.share].share, s.result(extra[i])})
	}
	if len(far) > 0 {
		s.report.StandOut = &StandOut{
			Period: fits[s.chosen].Period,
			Rest:   s.result(extra[len(extra)-1]),
			Keys:   s.farKeys(far),
		}
	}
	return nil
}

// listing returns a probe of the chosen period that lists what it denies each key.
func (s *sizing) listing(size int64) *probe {
	p := newProbe(s.periods.families, s.chosen, size)
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
		Top:        []Top{},
	}
	for _, d := range p.keys[:min(s.top, len(p.keys))] {
		r.Top = append(r.Top, Top{
			Key:      Key(s.names.keys[d.key]),
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
func (s *sizing) fits(ctx context.Context, found *search, extra []*probe) ([]Fit, error) {
	all := slices.Clone(extra)
	curves := make([][]*probe, len(found.families))
	for i := range found.families {
		for _, size := range found.curve(i) {
			p := newProbe(found.families, i, size)
			curves[i] = append(curves[i], p)
			all = append(all, p)
		}
	}
	if err := s.history.walk(ctx, &probes{all: all, needs: found.needs}); err != nil {
		return nil, err
	}
	fits := []Fit{}
	for i, f := range found.families {
		fit := Fit{Period: f.text(), Enough: s.enough(f), Curve: []Point{}, Needs: count125(found.needs[i])}
		if f.rate > 0 {
			fit.Rate, _, _ = strings.Cut(f.limit(1).String(), " burst")
		}
		for j, t := range found.targets {
			fitted := Fitted{MaxShare: t.share}
			if p := found.result(i, j); p != nil {
				point := p.point(f)
				fitted.Point = &point
			}
			fit.Fits = append(fit.Fits, fitted)
		}
		for _, p := range curves[i] {
			fit.Curve = append(fit.Curve, p.point(f))
		}
		fits = append(fits, fit)
	}
	return fits, nil
}

func (p *probe) point(f family) Point { return Point{f.limit(p.size), p.size, p.denied, p.deniedKeys} }

// curve returns sizes of family i to draw: from a quarter of that of the largest target to that
// which denies nothing, evenly on a scale of logarithms.
func (s *search) curve(i int) []int64 {
	f := s.families[i]
	high := s.brackets[i][0].high
	low := max(s.brackets[i][len(s.targets)-1].high/4, 1)
	var sizes []int64
	for _, b := range s.brackets[i] {
		sizes = append(sizes, f.exact(b.high))
	}
	for j := range curvePoints {
		part := float64(j) / (curvePoints - 1)
		sizes = append(sizes, f.exact(int64(float64(low)*math.Pow(float64(high)/float64(low), part)+0.5)))
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// count125 counts keys by what they need, in steps of 1, 2, 5, 10.
func count125(needs []uint32) []Needs {
	counts := []Needs{{From: 1, To: 1}}
	for most := int64(slices.Max(needs)); counts[len(counts)-1].To < most; {
		last := counts[len(counts)-1].To
		next := 2 * last
		for power := int64(1); power <= last; power *= 10 {
			if last == 2*power {
				next = 5 * power
			}
		}
		counts = append(counts, Needs{From: last + 1, To: next})
	}
	for _, n := range needs {
		i, _ := slices.BinarySearchFunc(counts, int64(n), func(c Needs, n int64) int { return int(c.To - n) })
		counts[i].Keys++
	}
	return counts
}
