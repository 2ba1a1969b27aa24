package replay

import (
	"cmp"
	"slices"
	"strings"
)

// fits returns what a search found.
func (s *sizing) fits(found *search) []SmallestLimits {
	fits := []SmallestLimits{}
	for i, f := range found.families[:len(found.needs)] {
		fit := SmallestLimits{
			Period: f.text(), Enough: s.enough(f), Fits: found.fitted(i),
			Needs: count125(found.needs[i]),
		}
		if f.rate > 0 {
			fit.Rate, _, _ = strings.Cut(f.limit(1).String(), " burst")
		}
		if len(found.standOut) > 0 {
			fit.Rest = found.fitted(found.rest(i))
		}
		fits = append(fits, fit)
	}
	return fits
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
