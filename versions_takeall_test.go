package headgate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TakeAll of one request decides as Take does, whatever versions take turns and however
// the clock steps.
func TestVersionsByTakeAll(t *testing.T) {
	versions := [][2]string{
		{"api=5/s stepped", "api=3/7s burst 2 stepped"},
		{"api=10/m burst 3 stepped", "api=1/s burst 4 stepped"},
		{"api=10/m", "api=1/s burst 4"},
		{"api=6/m fixed-window", "api=2/10s fixed-window"},
		{"api=6/m sliding-window", "api=2/10s sliding-window"},
		{"api=6/m sliding-log", "api=2/10s sliding-log"},
	}
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 5))
		pair := versions[seed%uint64(len(versions))]
		limits := [2]Limit{must(ParseLimit(pair[0])), must(ParseLimit(pair[1]))}
		one, group := NewMemory(16), NewMemory(16)
		at := midnight
		for step := range 200 {
			r := Request{Key: "k", Limit: limits[random.IntN(2)], Cost: random.Int64N(5) - 1, At: at}
			d := must(one.Take(t.Context(), r))
			var ds [1]Decision
			if err := group.TakeAll(t.Context(), []Request{r}, ds[:]); err != nil {
				t.Fatal(err)
			}
			if d != ds[0] {
				t.Fatalf("seed %d, step %d, %s, cost %d: Take %+v; TakeAll %+v", seed, step, r.Limit, r.Cost, d, ds[0])
			}
			at = at.Add(time.Duration(random.Int64N(int64(3 * time.Second))))
			if random.IntN(10) == 0 {
				at = at.Add(-time.Duration(random.Int64N(int64(20 * time.Second))))
			}
		}
	}
}
