package replay_test

import (
	"math/big"
	"os"
	"os/exec"
	"slices"
	"strconv"
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

// A fixed window is counted by awk, which knows nothing of this project: the
// second of a combined log is its fourth field.
func TestFixedWindowByAwk(t *testing.T) {
	const program = `
		{ if (!($1 in asked)) keys++; asked[$1]++ }
		++granted[$1 $4] > n { if (!($1 in denied)) deniedkeys++; denied[$1]++; total++ }
		END {
			print NR, NR - total, total + 0, keys, deniedkeys + 0
			for (key in denied) print key, denied[key]
		}`
	for _, n := range []string{"1", "2", "5", "10", "20"} {
		awk := exec.CommandContext(t.Context(), "awk", "-v", "n="+n, program, shopDay)
		awk.Env = append(os.Environ(), "LC_ALL=C")
		out, err := awk.Output()
		if err != nil {
			t.Fatalf("awk: %v", err)
		}
		head, rest, _ := strings.Cut(string(out), "\n")
		numbers := numbersOf(t, strings.Fields(head))
		want := outcome{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], map[string]int64{}}
		for line := range strings.Lines(rest) {
			fields := strings.Fields(line)
			want.deniedOf[fields[0]] = numbersOf(t, fields[1:])[0]
		}
		if want.denied == 0 {
			t.Errorf("awk found no denial by %s/s, so that this proves nothing", n)
		}
		replayed(t, n+"/s fixed-window").mustBe(t, want)
	}
}

func numbersOf(t *testing.T, texts []string) (ns []int64) {
	t.Helper()
	for _, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ns = append(ns, n)
	}
	return ns
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
