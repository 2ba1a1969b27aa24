package replay

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	maxStandOut  = 20 // keys that can stand out
	standOutGap  = 3  // times what the rest needs
	standOutNeed = 10 // at least
)

// standOut returns keys that need much more than the rest, the most first. They are at most a
// tenth of the keys.
func standOut(needs []uint32) (keys []uint32) {
	all := func(yield func(uint32) bool) {
		for k := range needs {
			if !yield(uint32(k)) {
				return
			}
		}
	}
	most := top(maxStandOut+1, all, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b))
	})
	gap := float64(standOutGap)
	for i := 1; i < len(most) && i <= len(needs)/10; i++ {
		above, below := needs[most[i-1]], needs[most[i]]
		if ratio := float64(above) / float64(below); above >= standOutNeed && ratio >= gap {
			gap, keys = ratio, most[:i]
		}
	}
	return keys
}

// allStandOut returns the keys that stand out for one of the periods.
func allStandOut(needs [][]uint32, periods []int) (all []uint32) {
	for _, i := range periods {
		all = append(all, standOut(needs[i])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dropOrdinary removes the keys that stand out for another period, and for that of the proposals
// need no more than the rest: there is nothing to decide about them. It reports whether there are
// any.
func (s *sizing) dropOrdinary() bool {
	rest, before := s.periods.result(s.periods.rest(s.chosen), 0).size, len(s.standOut)
	s.standOut = slices.DeleteFunc(s.standOut, func(k uint32) bool {
		return int64(s.periods.needs[s.chosen][k]) <= rest
	})
	return len(s.standOut) < before
}

// standOutKeys sorts and describes the keys that stand out, for so many proposals. findTimes adds
// their times.
func (s *sizing) standOutKeys(proposals int) []StandOutKey {
	f, needs := s.periods.families[s.chosen], s.periods.needs[s.chosen]
	slices.SortFunc(s.standOut, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b))
	})
	var keys []StandOutKey
	for _, k := range s.standOut {
		keys = append(keys, StandOutKey{
			Key:      LogKey(s.names.keys[k]),
			Requests: s.asked[k],
			Share:    float64(s.asked[k]) / float64(s.requests),
			Need:     f.limit(f.rounded(int64(needs[k]))),
			Denied:   make([]int64, proposals),
		})
	}
	return keys
}

// findTimes finds the first and the last request of each key that stands out.
func (s *sizing) findTimes(ctx context.Context) error {
	if len(s.standOut) == 0 {
		return nil
	}
	t := &keyTimes{standOut: s.standOut, keys: s.report.StandOut.Keys}
	return s.history.walk(ctx, t)
}

// keyTimes sets the times of keys, which are described in the order of standOut.
type keyTimes struct {
	standOut []uint32
	keys     []StandOutKey
	key      *StandOutKey
}

func (t *keyTimes) begin(key uint32) bool {
	i := slices.Index(t.standOut, key)
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
