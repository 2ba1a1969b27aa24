package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

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
		if len(found.standOut) > 0 {
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

// curve returns sizes of family i to draw, evenly on a logarithmic scale. They go from a quarter of
// the size for the largest target to the size that denies nothing.
func (s *search) curve(i int) (sizes []int64) {
	f, brackets := s.families[i], slices.Clone(s.brackets[i])
	if len(s.standOut) > 0 {
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
