package replay_test

import (
	"bufio"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

const shopDay = "../../../../examples/shop-day.log"

// outcome is what a replay and a second count of the same must agree on.
type outcome struct {
	requests, allowed, denied, keys, deniedKeys int64
	deniedOf                                    map[string]int64
}

func replayed(t *testing.T, limit string) outcome {
	t.Helper()
	f, err := os.Open(shopDay)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := config(t, "ip", limit)
	c.Top = 1000
	report, err := replay.Run(t.Context(), c, replay.Log{Name: shopDay, Reader: f})
	if err != nil {
		t.Fatal(err)
	}
	l := report.Limits[0]
	o := outcome{l.Requests, l.Allowed, l.Denied, l.Keys, l.DeniedKeys, map[string]int64{}}
	for _, top := range l.Top {
		o.deniedOf[string(top.Key)] = top.Denied
	}
	return o
}

func (o outcome) mustBe(t *testing.T, want outcome) {
	t.Helper()
	if o.requests != want.requests || o.allowed != want.allowed || o.denied != want.denied || o.keys != want.keys || o.deniedKeys != want.deniedKeys {
		t.Errorf("%+v; counted another way: %+v", o, want)
	}
	for key, n := range want.deniedOf {
		if o.deniedOf[key] != n {
			t.Errorf("%s was denied %d times; counted another way: %d", key, o.deniedOf[key], n)
		}
	}
}

// The algorithms once more, from their definitions, as simply as can be: fractions
// of any size instead of reduced integers, every grant remembered.

// A rule decides one request of a key at a time, in microseconds.
type rule func(now int64) (granted bool)

func naiveBucket(n, burst int64, period time.Duration) rule {
	level := big.NewRat(burst, 1)
	full := big.NewRat(burst, 1)
	one := big.NewRat(1, 1)
	last := int64(-1)
	return func(now int64) bool {
		if last >= 0 {
			level.Add(level, big.NewRat(n*(now-last), period.Microseconds()))
			if level.Cmp(full) > 0 {
				level.Set(full)
			}
		}
		last = now
		if level.Cmp(one) < 0 {
			return false
		}
		level.Sub(level, one)
		return true
	}
}

func naiveLog(n int, window time.Duration) rule {
	var grants []int64
	return func(now int64) bool {
		inside := 0
		for _, at := range grants {
			if now-at < window.Microseconds() {
				inside++
			}
		}
		if inside+1 > n {
			return false
		}
		grants = append(grants, now)
		return true
	}
}

func naiveWindow(n int64, window time.Duration) rule {
	grants := map[int64]int64{} // by the number of the window since the epoch
	size := window.Microseconds()
	return func(now int64) bool {
		this, elapsed := now/size, now%size
		weighed := big.NewRat(grants[this-1]*(size-elapsed), size)
		weighed.Add(weighed, big.NewRat(grants[this]+1, 1))
		if weighed.Cmp(big.NewRat(n, 1)) > 0 {
			return false
		}
		grants[this]++
		return true
	}
}

func TestAlgorithmsByDefinition(t *testing.T) {
	for _, c := range []struct {
		limit string
		rule  func() rule
	}{
		{"60/m", func() rule { return naiveBucket(60, 60, time.Minute) }},
		{"10/s burst 50", func() rule { return naiveBucket(10, 50, time.Second) }},
		{"7/h burst 3", func() rule { return naiveBucket(7, 3, time.Hour) }},
		{"3/7s burst 1", func() rule { return naiveBucket(3, 1, 7*time.Second) }},
		{"60/m sliding-log", func() rule { return naiveLog(60, time.Minute) }},
		{"5/15m sliding-log", func() rule { return naiveLog(5, 15*time.Minute) }},
		{"3/s sliding-log", func() rule { return naiveLog(3, time.Second) }},
		{"60/m sliding-window", func() rule { return naiveWindow(60, time.Minute) }},
		{"5/15m sliding-window", func() rule { return naiveWindow(5, 15*time.Minute) }},
		{"1/s fixed-window", func() rule { return naiveFixed(1, time.Second) }},
		{"5/s fixed-window", func() rule { return naiveFixed(5, time.Second) }},
		{"20/7s fixed-window", func() rule { return naiveFixed(20, 7*time.Second) }},
		{"10/7s sliding-window", func() rule { return naiveWindow(10, 7*time.Second) }},
	} {
		want := outcome{deniedOf: map[string]int64{}}
		rules := map[string]rule{}
		for key, now := range shopRequests(t) {
			if rules[key] == nil {
				rules[key] = c.rule()
			}
			want.requests++
			if rules[key](now) {
				want.allowed++
			} else {
				want.denied++
				want.deniedOf[key]++
			}
		}
		want.keys, want.deniedKeys = int64(len(rules)), int64(len(want.deniedOf))
		if want.denied == 0 {
			t.Errorf("%s denies nothing, so that this proves nothing", c.limit)
		}
		t.Run(c.limit, func(t *testing.T) { replayed(t, c.limit).mustBe(t, want) })
	}
}

// shopRequests reads the shop's day with a regular expression and the time
// package: its clients and times.
func shopRequests(t *testing.T) func(yield func(string, int64) bool) {
	t.Helper()
	f, err := os.Open(shopDay)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, int64) bool) {
		defer f.Close()
		form := regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "`)
		for lines := bufio.NewScanner(f); lines.Scan(); {
			m := form.FindStringSubmatch(lines.Text())
			if m == nil {
				t.Fatalf("unexpected line %q", lines.Text())
			}
			at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
			if err != nil {
				t.Fatal(err)
			}
			if !yield(m[1], at.UnixMicro()) {
				return
			}
		}
	}
}

// The blog's lines are out of order; those that are not too late are decided as if
// the log had been sorted by time beforehand.
func TestOutOfOrderLog(t *testing.T) {
	log, err := os.ReadFile("testdata/blog-slice.log")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(log)))
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.Fields(a)[3], strings.Fields(b)[3]) // all of one month
	})
	c := config(t, "ip", "3/10s", "1/s fixed-window", "4/m sliding-log")
	want := run(t, c, strings.Join(lines, ""))
	got := run(t, c, string(log))
	if got != want {
		t.Errorf("out of order:\n%s\nsorted:\n%s", got, want)
	}
	if !strings.Contains(got, `"late":0`) {
		t.Error("lines of the blog were late")
	}
	c.Reorder = 0
	if got = run(t, c, string(log)); got == want || strings.Contains(got, `"late":0,`) {
		t.Errorf("without reordering, no line was late: %s", got)
	}
}
