package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHeard(t *testing.T) {
	const keep = 3 * time.Second
	for name, steps := range map[string][]struct {
		at        time.Duration
		hear, say int64
	}{
		"more are heard at once":                {{0, 1, 1}, {1, 4, 4}, {2, 5, 5}},
		"two quick beats after a loss":          {{0, 10, 10}, {1, 10, 10}, {2, 1, 10}, {3, 1, 10}, {3*time.Second + 1, 7, 10}, {3*time.Second + 2, 7, 7}},
		"fewer count when the time is over":     {{0, 3, 3}, {time.Second, 2, 3}, {4*time.Second - 1, 1, 3}, {4 * time.Second, 1, 2}, {7 * time.Second, 1, 1}},
		"a silence, after which nobody is left": {{0, 9, 9}, {time.Hour, 1, 9}, {time.Hour + keep - 1, 2, 9}, {time.Hour + keep, 2, 2}},
	} {
		var h heard
		start := time.Now()
		for i, s := range steps {
			if got := h.hear(s.hear, start.Add(s.at), keep); got != s.say {
				t.Errorf("%s: step %d: %d; want %d", name, i, got, s.say)
			}
		}
	}
}

// The number is the largest that was gone by at any time since three intervals ago, as told by all that was ever
// heard; and what is kept is no more than the numbers that can be told apart.
func TestHeardIsTheLargestOfLate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const keep = 30
	for range 200 {
		var h heard
		var numbers []int64
		var times []time.Time
		now := time.Unix(0, 0)
		for range 100 {
			now = now.Add(time.Duration(random.IntN(20)))
			numbers, times = append(numbers, 1+random.Int64N(8)), append(times, now)
			want := numbers[len(numbers)-1]
			for i := range len(numbers) - 1 {
				if now.Sub(times[i+1]) < keep {
					want = max(want, numbers[i])
				}
			}
			if got := h.hear(numbers[len(numbers)-1], now, keep); got != want || len(h) > 8 {
				t.Fatalf("heard %v at %v: %d of %d kept; want %d", numbers, times, got, len(h), want)
			}
		}
	}
}
