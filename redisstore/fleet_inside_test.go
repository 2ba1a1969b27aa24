package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRecentCounts(t *testing.T) {
	const keep = 3 * time.Second
	for name, steps := range map[string][]struct {
		at          time.Duration
		count, want int64
	}{
		"more count at once": {{0, 1, 1}, {1, 4, 4}, {2, 5, 5}},
		"two quick heartbeats after a loss": {
			{0, 10, 10}, {1, 10, 10}, {2, 1, 10}, {3, 1, 10},
			{3*time.Second + 1, 7, 10}, {3*time.Second + 2, 7, 7},
		},
		"fewer count when the time is over": {
			{0, 3, 3}, {time.Second, 2, 3}, {4*time.Second - 1, 1, 3},
			{4 * time.Second, 1, 2}, {7 * time.Second, 1, 1},
		},
		"after an hour without an answer only one is left": {
			{0, 9, 9}, {time.Hour, 1, 9}, {time.Hour + keep - 1, 2, 9}, {time.Hour + keep, 2, 2},
		},
	} {
		var c recentCounts
		start := time.Now()
		for i, s := range steps {
			if got := c.add(s.count, start.Add(s.at), keep); got != s.want {
				t.Errorf("%s: step %d: %d; want %d", name, i, got, s.want)
			}
		}
	}
}

// The result is the largest count that was current at any time less than keep ago, computed from
// all counts; and no more counts are kept than there are different ones.
func TestRecentCountsReturnTheLargest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const keep = 30
	for range 200 {
		var c recentCounts
		var counts []int64
		var times []time.Time
		now := time.Unix(0, 0)
		for range 100 {
			now = now.Add(time.Duration(random.IntN(20)))
			last := 1 + random.Int64N(8)
			counts, times = append(counts, last), append(times, now)
			want := last
			for i := range len(counts) - 1 {
				if now.Sub(times[i+1]) < keep {
					want = max(want, counts[i])
				}
			}
			if got := c.add(last, now, keep); got != want || len(c) > 8 {
				t.Fatalf("counts %v at %v: %d, %d kept; want %d", counts, times, got, len(c), want)
			}
		}
	}
}
