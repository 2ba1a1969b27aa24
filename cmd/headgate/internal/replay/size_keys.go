package replay

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	maxFar  = 20 // keys that can stand out
	farGap  = 3  // times what the rest needs
	farNeed = 10 // at least
)

// farthest returns keys that need much more than the rest, the most first. They are at most a
// tenth of the keys.
func farthest(needs []uint32) (far []uint32) {
	keys := func(yield func(uint32) bool) {
		for k := range needs {
			if !yield(uint32(k)) {
				return
			}
		}
	}
	most := top(maxFar+1, keys, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b))
	})
	gap := float64(farGap)
	for i := 1; i < len(most) && i <= len(needs)/10; i++ {
		above, below := needs[most[i-1]], needs[most[i]]
		if ratio := float64(above) / float64(below); above >= farNeed && ratio >= gap {
			gap, far = ratio, most[:i]
		}
	}
	return far
}

// allFar returns the keys that are far from the rest for some period.
func allFar(needs [][]uint32) (all []uint32) {
	for _, n := range needs {
		all = append(all, farthest(n)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// farKeys sorts and describes the keys that stand out, for so many proposals. findTimes adds their
// times.
func (s *sizing) farKeys(proposals int) []FarKey {
	f, needs := s.periods.families[s.chosen], s.periods.needs[s.chosen]
	slices.SortFunc(s.far, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b))
	})
	var keys []FarKey
	for _, k := range s.far {
		keys = append(keys, FarKey{
			Key:      LogKey(s.names.keys[k]),
			Requests: s.asked[k],
			Share:    float64(s.asked[k]) / float64(s.requests),
			Need:     f.limit(f.exact(int64(needs[k]))),
			Denied:   make([]int64, proposals),
		})
	}
	return keys
}

// findTimes finds the first and the last request of each key that stands out.
func (s *sizing) findTimes(ctx context.Context) error {
	if len(s.far) == 0 {
		return nil
	}
	t := &keyTimes{far: s.far, keys: s.report.StandOut.Keys}
	return s.history.walk(ctx, t)
}

// keyTimes sets the times of keys, which are described in the order of far.
type keyTimes struct {
	far  []uint32
	keys []FarKey
	key  *FarKey
}

func (t *keyTimes) begin(key uint32) bool {
	i := slices.Index(t.far, key)
	if i < 0 {
		return false
	}
	t.key = &t.keys[i]
	return true
}

func (t *keyTimes) see(vs []visits) {
	if t.key.From.IsZero() {
		t.key.From = time.UnixMicro(vs[0].at).UTC()
	}
	t.key.To = time.UnixMicro(vs[len(vs)-1].at).UTC()
}

func (t *keyTimes) end() {}
