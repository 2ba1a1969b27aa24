package replay

import (
	"context"
	"slices"
)

// target is what a limit may deny at most.
type target struct {
	share  float64 // of the requests
	denied int64
}

// search finds the smallest size of each family that meets each target.
type search struct {
	families []family   // in the order of needs, and again with standOut set aside if any
	needs    [][]uint32 // by family and key
	standOut []uint32   // keys
	targets  [][]target // by family
	history  *history
	brackets [][]bracket // by family and target
	known    []map[int64]*probe
}

// bracket holds the answer: low is too small, high is large enough.
type bracket struct{ low, high int64 }

// add adds a family whose largest need is most.
func (s *search) add(f family, most int64, targets []target) {
	b := bracket{0, most}
	if f.rate > 0 {
		b.high = min(b.high, f.most(1))
	}
	s.families = append(s.families, f)
	s.targets = append(s.targets, targets)
	s.brackets = append(s.brackets, slices.Repeat([]bracket{b}, len(targets)))
	s.known = append(s.known, map[int64]*probe{})
}

// probe makes a probe for family i.
func (s *search) probe(i int, size int64) *probe {
	return newProbe(s.families[i], i%len(s.needs), size)
}

// walk runs probes.
func (s *search) walk(ctx context.Context, all []*probe) error {
	return s.history.walk(ctx, &probes{all: all, needs: s.needs, standOut: s.standOut})
}

// rest returns the index of family i with standOut set aside, or i if no key stands out.
func (s *search) rest(i int) int {
	if len(s.standOut) == 0 {
		return i
	}
	return i + len(s.needs)
}

// run narrows all brackets, each by half in a walk. Since a larger bucket of a family never denies
// more, the result is the smallest size.
func (s *search) run(ctx context.Context) error {
	for {
		var all []*probe
		for i, f := range s.families {
			for _, b := range s.brackets[i] {
				if b.high-b.low <= 1 {
					continue
				}
				size := f.rounded(b.low + (b.high-b.low)/2)
				if s.known[i][size] == nil {
					s.known[i][size] = s.probe(i, size)
					all = append(all, s.known[i][size])
				}
			}
		}
		if len(all) > 0 {
			if err := s.walk(ctx, all); err != nil {
				return err
			}
		}
		if !s.narrow() {
			return s.measure(ctx)
		}
	}
}

// narrow shrinks the brackets by the known results, and reports whether one changed.
func (s *search) narrow() (changed bool) {
	for i, f := range s.families {
		for j := range s.brackets[i] {
			b := &s.brackets[i][j]
			for b.high-b.low > 1 {
				middle := b.low + (b.high-b.low)/2
				p := s.known[i][f.rounded(middle)]
				if p == nil {
					break
				}
				if p.denied <= s.targets[i][j].denied {
					b.high = middle
				} else {
					b.low = middle
				}
				changed = true
			}
		}
	}
	return changed
}

// measure counts what the results deny.
func (s *search) measure(ctx context.Context) error {
	var all []*probe
	for i, f := range s.families {
		for _, b := range s.brackets[i] {
			size := f.rounded(b.high)
			if s.known[i][size] == nil {
				s.known[i][size] = s.probe(i, size)
				all = append(all, s.known[i][size])
			}
		}
	}
	return s.walk(ctx, all)
}

// result returns the size that meets target j in family i, and what it denies. It is nil if no
// size that can be counted exactly meets the target.
func (s *search) result(i, j int) *probe {
	p := s.known[i][s.families[i].rounded(s.brackets[i][j].high)]
	if p.denied > s.targets[i][j].denied {
		return nil
	}
	return p
}
