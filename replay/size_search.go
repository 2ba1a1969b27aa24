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
	families []family
	needs    [][]uint32
	targets  []target
	history  *history
	denyKeys int64 // -1: any number

	brackets [][]bracket // by family and target
	known    []map[int64]*probe
}

// bracket holds the answer: low is too small, high is large enough.
type bracket struct{ low, high int64 }

// newSearch starts with what follows from the needs of the keys: the size that denies no request,
// and the one that denies at most denyKeys keys (-1: any number).
func newSearch(families []family, needs [][]uint32, targets []target, denyKeys int64, h *history) *search {
	s := &search{families: families, needs: needs, targets: targets, history: h, denyKeys: denyKeys}
	for i, f := range families {
		least, most := int64(0), int64(slices.Max(needs[i]))
		if denyKeys >= 0 {
			least = nthNeed(needs[i], denyKeys) - 1
		}
		b := bracket{least, max(most, 1)}
		if f.rate > 0 {
			b.high = min(b.high, f.most(1))
		}
		s.brackets = append(s.brackets, slices.Repeat([]bracket{b}, len(targets)))
		s.known = append(s.known, map[int64]*probe{})
	}
	return s
}

// nthNeed returns the largest need of the keys after the n that need most.
func nthNeed(needs []uint32, n int64) int64 {
	if n >= int64(len(needs)) {
		return 1
	}
	if n == 0 {
		return int64(slices.Max(needs))
	}
	sorted := slices.Clone(needs)
	slices.Sort(sorted)
	return int64(sorted[int64(len(sorted))-1-n])
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
				size := f.exact(b.low + (b.high-b.low)/2)
				if s.known[i][size] == nil {
					s.known[i][size] = newProbe(s.families, i, size)
					all = append(all, s.known[i][size])
				}
			}
		}
		if len(all) > 0 {
			if err := s.history.walk(ctx, &probes{all: all, needs: s.needs}); err != nil {
				return err
			}
		}
		if !s.narrow() {
			return s.measure(ctx)
		}
	}
}

// narrow uses what is known, and reports whether a bracket changed.
func (s *search) narrow() (changed bool) {
	for i, f := range s.families {
		for j := range s.brackets[i] {
			b := &s.brackets[i][j]
			for b.high-b.low > 1 {
				middle := b.low + (b.high-b.low)/2
				p := s.known[i][f.exact(middle)]
				if p == nil {
					break
				}
				if p.denied <= s.targets[j].denied {
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
			size := f.exact(b.high)
			if s.known[i][size] == nil {
				s.known[i][size] = newProbe(s.families, i, size)
				all = append(all, s.known[i][size])
			}
		}
	}
	return s.history.walk(ctx, &probes{all: all, needs: s.needs})
}

// result returns the size that meets target j in family i, and what it denies. It is nil if no
// size that can be counted exactly meets the target.
func (s *search) result(i, j int) *probe {
	p := s.known[i][s.families[i].exact(s.brackets[i][j].high)]
	if p.denied > s.targets[j].denied || s.denyKeys >= 0 && p.deniedKeys > s.denyKeys {
		return nil
	}
	return p
}
