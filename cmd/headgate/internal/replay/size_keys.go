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

	maxBusy = 100 // keys that can be regular
)

// farthest returns keys that need much more than the rest, the most first. They are at most a
// tenth of the keys.
func farthest(needs []uint32) (far []uint32) {
	top := largest(len(needs), maxFar+1, func(a, b uint32) int {
		return cmp.Compare(needs[a], needs[b])
	})
	gap := float64(farGap)
	for i := 1; i < len(top) && i <= len(needs)/10; i++ {
		above, below := needs[top[i-1]], needs[top[i]]
		if ratio := float64(above) / float64(below); above >= farNeed && ratio >= gap {
			gap, far = ratio, top[:i]
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

// largest returns the indices of the n largest of size numbers, the largest first.
func largest(size, n int, compare func(a, b uint32) int) []uint32 {
	order := func(a, b uint32) int { return cmp.Or(compare(b, a), cmp.Compare(a, b)) }
	var top []uint32
	for i := range uint32(size) {
		if len(top) == n && order(i, top[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, i, order)
		top = slices.Insert(top, at, i)
		top = top[:min(len(top), n)]
	}
	return top
}

// farKeys sorts and describes the keys that stand out, for so many proposals. Their habits follow
// in findKeys.
func (s *sizing) farKeys(proposals int) []FarKey {
	f, needs := s.periods.families[s.chosen], s.periods.needs[s.chosen]
	slices.SortFunc(s.far, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b))
	})
	var keys []FarKey
	for _, k := range s.far {
		keys = append(keys, FarKey{
			Key:      Key(s.names.keys[k]),
			Requests: s.asked[k],
			Share:    float64(s.asked[k]) / float64(s.requests),
			Need:     f.limit(f.exact(int64(needs[k]))),
			Denied:   make([]int64, proposals),
		})
	}
	return keys
}

// findKeys finds the habits of the keys that stand out, and keys that come at fixed intervals
// among those with the most requests.
func (s *sizing) findKeys(ctx context.Context) error {
	busy := largest(len(s.asked), maxBusy, func(a, b uint32) int {
		return cmp.Compare(s.asked[a], s.asked[b])
	})
	h := &habits{wanted: map[uint32]bool{}, found: map[uint32]Habits{}}
	for _, k := range slices.Concat(s.far, busy) {
		h.wanted[k] = true
	}
	if err := s.history.walk(ctx, h); err != nil {
		return err
	}
	for i, k := range s.far {
		s.report.StandOut.Keys[i].Habits = h.found[k]
	}
	for _, k := range busy {
		if found := h.found[k]; found.IntervalS > 0 && len(s.report.Regular) < s.top {
			s.report.Regular = append(s.report.Regular, Regular{
				Key(s.names.keys[k]), s.asked[k], float64(s.asked[k]) / float64(s.requests), found,
			})
		}
	}
	return nil
}

const (
	regularRequests = 20  // fewer say nothing
	regularShare    = 0.8 // of the intervals
	maxIntervals    = 4096
)

// habits finds when keys come.
type habits struct {
	wanted map[uint32]bool
	found  map[uint32]Habits

	key       uint32
	from, to  int64
	hour      int64
	hours     int64
	requests  int64
	intervals map[int64]int64 // seconds: how often
}

func (h *habits) begin(key uint32) bool {
	if !h.wanted[key] {
		return false
	}
	*h = habits{wanted: h.wanted, found: h.found, key: key, intervals: map[int64]int64{}}
	return true
}

func (h *habits) see(vs []visits) {
	for _, v := range vs {
		seconds := (v.at - h.to + 500_000) / 1e6
		if h.requests == 0 {
			h.from = v.at
		} else if len(h.intervals) < maxIntervals || h.intervals[seconds] > 0 {
			h.intervals[seconds]++
		}
		h.intervals[0] += v.n - 1
		if hour := v.at / 3600e6; h.requests == 0 || hour != h.hour {
			h.hour = hour
			h.hours++
		}
		h.requests += v.n
		h.to = v.at
	}
}

func (h *habits) end() {
	found := Habits{From: time.UnixMicro(h.from).UTC(), To: time.UnixMicro(h.to).UTC(), Hours: h.hours}
	if h.requests >= regularRequests {
		found.IntervalS, found.Regularity = h.regular()
	}
	h.found[h.key] = found
}

// regular returns the interval between most requests, or 0 if there is none. Intervals of at most a
// second are traffic, not a schedule.
func (h *habits) regular() (seconds int64, share float64) {
	most := int64(0)
	for s, n := range h.intervals {
		if s > 1 && (n > most || n == most && s < seconds) {
			seconds, most = s, n
		}
	}
	near := h.intervals[seconds-1] + h.intervals[seconds] + h.intervals[seconds+1]
	share = float64(near) / float64(h.requests-1)
	if seconds == 0 || share < regularShare {
		return 0, 0
	}
	return seconds, share
}
