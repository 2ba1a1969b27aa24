package cli

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// A limit of a count and a period alone becomes one that keeps the count in any period.
func TestPaced(t *testing.T) {
	for _, c := range []struct {
		text   string
		smooth bool
		want   string
	}{
		{"5/s", false, "5/s sliding-log"},
		{"1.5/s", false, "3/2s sliding-log"},
		{"api=100/m", false, "api=100/m sliding-log"},
		{"65535/s", false, "65535/s sliding-log"},
		{"65536/s", false, "64845/s burst 655"},
		{"api=1000000/d", false, "api=990000/d burst 10000"},
		{"99/s", true, "99/s sliding-log"},
		{"100/s", true, "99/s burst 1"},
		{"1000000/s", true, "990000/s burst 10000"},
	} {
		l, err := headgate.ParseLimit(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := paced(l, c.smooth); got.String() != c.want {
			t.Errorf("%s: %s; want %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]bool{
		"5/s": true, " api = 5/s ": true, "5/s burst 5": false, "5/s token-bucket": false,
		"5/s fixed-window": false, "5/month": false, "api=5/year": false,
	} {
		if l, err := headgate.ParseLimit(text); err != nil || isPlain(text, l) != want {
			t.Errorf("%q is plain: %v", text, !want)
		}
	}
}

// Whenever parts come, no period holds more than the count of a paced limit, and a caller that
// always has something to pass gets at least 97% of it.
func TestPacedIsNeverOver(t *testing.T) {
	const period = time.Second
	for _, text := range []string{"5/s", "1000/s", "70000/s", "1000000/s"} {
		for _, smooth := range []bool{false, true} {
			l, err := headgate.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 2))
			limit, n := paced(l, smooth), l.Refill()
			passed := passGreedily(t, limit, random, 5*period)
			from, within, total := 0, int64(0), int64(0)
			for i, p := range passed {
				for within += p.n; p.at.Sub(passed[from].at) >= period; from++ {
					within -= passed[from].n
				}
				if total += p.n; within > n {
					t.Fatalf("%s as %s: %d within a period until part %d", text, limit, within, i)
				}
			}
			if total < 5*n*97/100 {
				t.Errorf("%s as %s: %d in 5 periods", text, limit, total)
			}
		}
	}
}

// pass is the time at which n tokens passed.
type pass struct {
	at time.Time
	n  int64
}

// passGreedily passes parts of random sizes under a limit, each as soon as it may.
func passGreedily(
	t *testing.T, l headgate.Limit, random *rand.Rand, span time.Duration,
) (all []pass) {
	t.Helper()
	memory := headgate.NewMemorySize(1000)
	begun := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	most := min(l.Capacity(), max(l.Capacity()/50, 1))
	for at := begun; at.Sub(begun) < span; {
		n := 1 + random.Int64N(most)
		d, err := memory.Take(t.Context(), headgate.Request{Key: "k", Limit: l, Cost: n, At: at})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed() {
			all = append(all, pass{at, n})
		}
		at = at.Add(d.RetryAfter)
	}
	return all
}
