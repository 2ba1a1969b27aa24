package httplimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Each row asks its limits for the given costs of one key, and writes the fields of
// the last decision. The bubble's clock begins at 2000-01-01, a whole day.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits string
		costs  []int64
		want   string // policies, limits, the three of X-RateLimit, Retry-After
	}{
		{"a fresh bucket", "100/m", []int64{0},
			`"100/m";q=100;w=60 | "100/m";r=100;t=0 | 100 100 0`},
		{"the next token comes before the bucket is full", "60/m", []int64{30},
			`"60/m";q=60;w=60 | "60/m";r=30;t=1 | 60 30 30`},
		{"a burst is the quota, in the time that refills it", "100/m burst 20", []int64{20},
			`"100/m burst 20";q=20;w=12 | "100/m burst 20";r=0;t=1 | 20 0 12`},
		{"a denial", "6/m", []int64{6, 2},
			`"6/m";q=6;w=60 | "6/m";r=0;t=20 | 6 0 60 | 20`},
		{"a wait of half a second is one", "2/s", []int64{2, 1},
			`"2/s";q=2;w=1 | "2/s";r=0;t=1 | 2 0 1 | 1`},
		{"a window is at least a second", "3/500ms fixed-window", []int64{1},
			`"3/500ms fixed-window";q=3;w=1 | "3/500ms fixed-window";r=2;t=1 | 3 2 1`},
		{"steps", "10/m burst 25 stepped", []int64{21},
			`"10/m burst 25 stepped";q=25;w=180 | "10/m burst 25 stepped";r=4;t=60 | 25 4 180`},
		{"two limits that grant: the one with less left", "second=10/s, day=1000/d fixed-window",
			[]int64{4},
			`"second";q=10;w=1, "day";q=1000;w=86400 | ` +
				`"second";r=6;t=1, "day";r=996;t=86400 | 10 6 1`},
		{"two limits of which one refuses", "second=10/s, day=1000/d fixed-window", []int64{10, 1},
			`"second";q=10;w=1, "day";q=1000;w=86400 | "second";r=0;t=1 | 10 0 1 | 1`},
		{"a log says nothing of when more comes", "3/m sliding-log", []int64{3},
			`"3/m sliding-log";q=3;w=60 | "3/m sliding-log";r=0 | 3 0 60`},
		{"but when a denied request fits", "3/m sliding-log", []int64{3, 1},
			`"3/m sliding-log";q=3;w=60 | "3/m sliding-log";r=0;t=60 | 3 0 60 | 60`},
		{"a calendar has no w", "5/day tz UTC", []int64{1},
			`"5/day tz UTC";q=5 | "5/day tz UTC";r=4;t=86400 | 5 4 86400`},
		{"what is too large for an Integer", "2000000000000000/s", []int64{0},
			`"2000000000000000/s";q=999999999999999;w=1 | ` +
				`"2000000000000000/s";r=999999999999999;t=0 | 2000000000000000 2000000000000000 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := written(t, c.limits, c.costs); got != c.want {
					t.Errorf("fields %s\nwant   %s", got, c.want)
				}
			})
		})
	}
}

// written are the fields for the last of some costs asked of one key. Times are since the epoch.
func written(t *testing.T, limits string, costs []int64) string {
	t.Helper()
	const epoch = 946684800
	l := newLimiter(t, strings.Split(limits, ", ")...)
	var ds []headgate.Decision
	for _, cost := range costs {
		var err error
		if ds, err = l.AllowEach(t.Context(), "k", cost, ds[:0]); err != nil {
			t.Fatal(err)
		}
	}
	h := http.Header{}
	httplimit.AllFields.Write(h, time.Now(), ds...)
	texts := []string{
		h.Get("Ratelimit-Policy"), h.Get("Ratelimit"),
		fmt.Sprint(h.Get("X-Ratelimit-Limit"), " ", h.Get("X-Ratelimit-Remaining"), " ",
			number(t, answer{header: h}, "X-Ratelimit-Reset")-epoch),
	}
	if retry := h.Get("Retry-After"); retry != "" {
		texts = append(texts, retry)
	}
	if len(h) != len(texts)+2 {
		t.Errorf("fields %v", h)
	}
	return strings.Join(texts, " | ")
}

// What has no limit sets no field.
func TestFieldsLeftAlone(t *testing.T) {
	h := http.Header{}
	httplimit.AllFields.Write(h, time.Now())
	httplimit.AllFields.Write(h, time.Now(), headgate.Decision{})
	httplimit.AllFields.Write(h, time.Now(),
		headgate.Decision{Limit: headgate.Unlimited(), Remaining: 1})
	if len(h) != 0 {
		t.Errorf("fields %v for no limit", h)
	}
}

// Responses share the values that are always the same. What a handler adds to a field is only in
// its own response.
func TestAddedValuesStayInTheirResponse(t *testing.T) {
	limit, err := httplimit.New(newLimiter(t, "9/h"), httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name := range w.Header() {
			w.Header().Add(name, "added")
		}
	}))
	for range 2 {
		r := get(t, h)
		for name, values := range r.header {
			if len(values) != 2 || values[0] == "added" || values[1] != "added" {
				t.Errorf("%s: %q", name, values)
			}
		}
	}
}

func TestFieldsChosen(t *testing.T) {
	for fields, want := range map[httplimit.Fields][]string{
		httplimit.NoFields:   nil,
		httplimit.Draft10:    {"Ratelimit-Policy", "Ratelimit"},
		httplimit.XRateLimit: {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		httplimit.RetryAfter: {"Retry-After"},
		httplimit.AllFields: {"Ratelimit-Policy", "Ratelimit", "X-Ratelimit-Limit",
			"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"},
	} {
		h := protect(t, newLimiter(t, "1/h"),
			httplimit.Options{Fields: fields,
				Denied: func(http.ResponseWriter, *http.Request, []headgate.Decision) {}})
		get(t, h)
		r := get(t, h)
		for _, name := range want {
			if r.header.Get(name) == "" {
				t.Errorf("%v: no %s", fields, name)
			}
		}
		if len(r.header) != len(want) {
			t.Errorf("%v: %v; want %v", fields, r.header, want)
		}
	}
}

// One limiter inside another adds its policies; the inner one has the last word on
// the rest.
func TestFieldsOfTwoLimiters(t *testing.T) {
	limit, err := httplimit.New(newLimiter(t, "all=100/m"), httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := get(t, limit(protect(t, newLimiter(t, "page=10/m"), httplimit.Options{})))
	if got := r.header["Ratelimit-Policy"]; len(got) != 2 || got[0] != `"all";q=100;w=60` ||
		got[1] != `"page";q=10;w=60` {
		t.Errorf("policies %q", got)
	}
	if got := r.header["X-Ratelimit-Limit"]; len(got) != 1 || got[0] != "10" {
		t.Errorf("limit %q", got)
	}
}

// A client that waits for Retry-After is served, and not a second earlier. At X-Ratelimit-Reset,
// the key is back in its initial state.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, text := range []string{"7/m", "3/s", "90/m burst 4", "5/7s stepped",
		"4/10s fixed-window", "6/9s sliding-window", "5/11s sliding-log", "1000000/s burst 1"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { obey(t, text) })
		})
	}
}

func obey(t *testing.T, text string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var cost int64
	h := protect(t, newLimiter(t, text),
		httplimit.Options{Cost: func(*http.Request) int64 { return cost }})
	capacity := parse(t, text).Capacity()
	denials := 0
	for range 2000 {
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		cost = 1 + random.Int64N(min(capacity, 3))
		r := get(t, h)
		reset := number(t, r, "X-Ratelimit-Reset")
		if now := time.Now().Unix(); reset < now {
			t.Fatalf("reset at %d, before now, %d", reset, now)
		}
		if r.status == http.StatusOK {
			continue
		}
		denials++
		wait := time.Duration(number(t, r, "Retry-After")) * time.Second
		if wait > time.Second {
			time.Sleep(wait - time.Second)
			if early := get(t, h); early.status != http.StatusTooManyRequests {
				t.Fatalf("granted a second before Retry-After: %s", wait)
			}
			wait = time.Second
		}
		time.Sleep(wait)
		if r := get(t, h); r.status != http.StatusOK {
			t.Fatalf("denied after waiting for Retry-After: %v", r.header)
		}
	}
	if denials == 0 && capacity > 1 {
		t.Error("nothing was ever denied")
	}
	cost = 0
	time.Sleep(time.Until(time.Unix(number(t, get(t, h), "X-Ratelimit-Reset"), 0)))
	if r := get(t, h); number(t, r, "X-Ratelimit-Remaining") != capacity {
		t.Errorf("not in its initial state at its reset: %v", r.header)
	}
}

func number(t *testing.T, r answer, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(r.header.Get(name), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
