package console

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// A history agrees with a list of all that was counted, over random times and pauses.
func TestHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHistory(1000)
	type event struct {
		step int64
		rule string
	}
	var all []event
	step := int64(1000)
	for range 3000 {
		switch random.IntN(200) {
		case 0:
			step += random.Int64N(300)
		case 1, 2, 3, 4, 5:
			step++
		}
		h.advance(step)
		e := event{step - random.Int64N(3), []string{"a", "b", "c"}[random.IntN(3)]}
		h.add(e.step, e.rule, counts{denied: 1})
		all = append(all, e)
		if random.IntN(50) > 0 {
			continue
		}
		want := map[string]uint64{}
		for _, e := range all {
			if e.step > step-kept {
				want[e.rule]++
			}
		}
		if got := h.decisions(); !reflect.DeepEqual(got, want) {
			t.Fatalf("at %d: %v, want %v", step, got, want)
		}
	}
}

// A history has counts of so many rules, and the total of all.
func TestHistoryIsBounded(t *testing.T) {
	h := newHistory(1)
	for i := range 2 * maxRules {
		h.add(1, string(rune('a'+i)), counts{1})
	}
	if len(h.rules) != maxRules || h.total.at(1)[allowed] != 2*maxRules {
		t.Errorf("%d rules, total %v", len(h.rules), h.total.at(1))
	}
	h.advance(1 + kept/2)
	h.advance(1 + kept)
	h.advance(2 + kept)
	if len(h.rules) != 0 {
		t.Errorf("%d rules without a count are kept", len(h.rules))
	}
}

func TestPercentile(t *testing.T) {
	calls := make([]uint64, 15)
	if percentile(calls, .5) != nil || percentile(nil, .5) != nil {
		t.Error("there is a percentile of no calls")
	}
	calls[0], calls[5], calls[14] = 50, 48, 2 // 10 us; 500 us to 1 ms; more than 1 s
	for fraction, want := range map[float64]int64{.25: 5, .5: 10, .74: 750, .98: 1000, .99: 1e6} {
		if got := *percentile(calls, fraction); got != want {
			t.Errorf("p%v: %d, want %d", 100*fraction, got, want)
		}
	}
}

// Percentiles are those of the last five seconds.
func TestLatencyForgets(t *testing.T) {
	c := newConsole(t, nil)
	var l latency
	now := time.Unix(1_800_000_000, 0)
	l.read(c.metrics, now)
	for range 30 {
		now = now.Add(time.Second)
		c.metrics.Called(t.Context(), call(time.Millisecond))
		l.read(c.metrics, now)
	}
	sum := uint64(0)
	for _, n := range l.recent() {
		sum += n
	}
	if sum != 5 {
		t.Errorf("%d calls count, want those of 5 s", sum)
	}
}
