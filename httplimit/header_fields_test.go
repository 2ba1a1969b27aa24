package httplimit_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
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
	const epoch = 946684800
	for _, c := range []struct {
		name   string
		limits []string
		costs  []int64
		want   map[string]string
	}{
		{"a fresh bucket", []string{"100/m"}, []int64{0}, map[string]string{
			"Ratelimit-Policy": `"100/m";q=100;w=60`, "Ratelimit": `"100/m";r=100;t=0`,
			"X-Ratelimit-Limit": "100", "X-Ratelimit-Remaining": "100", "X-Ratelimit-Reset": strconv.Itoa(epoch),
		}},
		{"the next token comes before the bucket is full", []string{"60/m"}, []int64{30}, map[string]string{
			"Ratelimit-Policy": `"60/m";q=60;w=60`, "Ratelimit": `"60/m";r=30;t=1`,
			"X-Ratelimit-Limit": "60", "X-Ratelimit-Remaining": "30", "X-Ratelimit-Reset": strconv.Itoa(epoch + 30),
		}},
		{"a burst is the quota, in the time that refills it", []string{"100/m burst 20"}, []int64{20}, map[string]string{
			"Ratelimit-Policy": `"100/m burst 20";q=20;w=12`, "Ratelimit": `"100/m burst 20";r=0;t=1`,
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 12),
		}},
		{"a denial", []string{"6/m"}, []int64{6, 2}, map[string]string{
			"Ratelimit-Policy": `"6/m";q=6;w=60`, "Ratelimit": `"6/m";r=0;t=20`,
			"X-Ratelimit-Limit": "6", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 60), "Retry-After": "20",
		}},
		{"a wait of half a second is one", []string{"2/s"}, []int64{2, 1}, map[string]string{
			"Ratelimit-Policy": `"2/s";q=2;w=1`, "Ratelimit": `"2/s";r=0;t=1`,
			"X-Ratelimit-Limit": "2", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 1), "Retry-After": "1",
		}},
		{"a window is at least a second", []string{"3/500ms fixed-window"}, []int64{1}, map[string]string{
			"Ratelimit-Policy": `"3/500ms fixed-window";q=3;w=1`, "Ratelimit": `"3/500ms fixed-window";r=2;t=1`,
			"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "2", "X-Ratelimit-Reset": strconv.Itoa(epoch + 1),
		}},
		{"steps", []string{"10/m burst 25 stepped"}, []int64{21}, map[string]string{
			"Ratelimit-Policy": `"10/m burst 25 stepped";q=25;w=180`, "Ratelimit": `"10/m burst 25 stepped";r=4;t=60`,
			"X-Ratelimit-Limit": "25", "X-Ratelimit-Remaining": "4", "X-Ratelimit-Reset": strconv.Itoa(epoch + 180),
		}},
		{"two limits that grant: the one with less left", []string{"second=10/s", "day=1000/d fixed-window"}, []int64{4}, map[string]string{
			"Ratelimit-Policy": `"second";q=10;w=1, "day";q=1000;w=86400`, "Ratelimit": `"second";r=6;t=1, "day";r=996;t=86400`,
			"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "6", "X-Ratelimit-Reset": strconv.Itoa(epoch + 1),
		}},
		{"two limits of which one refuses", []string{"second=10/s", "day=1000/d fixed-window"}, []int64{10, 1}, map[string]string{
			"Ratelimit-Policy": `"second";q=10;w=1, "day";q=1000;w=86400`, "Ratelimit": `"second";r=0;t=1`,
			"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 1), "Retry-After": "1",
		}},
		{"a log says nothing of when more comes", []string{"3/m sliding-log"}, []int64{3}, map[string]string{
			"Ratelimit-Policy": `"3/m sliding-log";q=3;w=60`, "Ratelimit": `"3/m sliding-log";r=0`,
			"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 60),
		}},
		{"but when a denied request fits", []string{"3/m sliding-log"}, []int64{3, 1}, map[string]string{
			"Ratelimit-Policy": `"3/m sliding-log";q=3;w=60`, "Ratelimit": `"3/m sliding-log";r=0;t=60`,
			"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.Itoa(epoch + 60), "Retry-After": "60",
		}},
		{"what is too large for an Integer", []string{"2000000000000000/s"}, []int64{0}, map[string]string{
			"Ratelimit-Policy": `"2000000000000000/s";q=999999999999999;w=1`, "Ratelimit": `"2000000000000000/s";r=999999999999999;t=0`,
			"X-Ratelimit-Limit": "2000000000000000", "X-Ratelimit-Remaining": "2000000000000000", "X-Ratelimit-Reset": strconv.Itoa(epoch),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := written(t, c.limits, c.costs)
				if want := canonical(c.want); !maps.EqualFunc(h, want, slices.Equal) {
					t.Errorf("fields %v; want %v", h, want)
				}
			})
		})
	}
}

// written are the fields for the last of some costs asked of one key.
func written(t *testing.T, limits []string, costs []int64) http.Header {
	t.Helper()
	l := newLimiter(t, limits...)
	var ds []headgate.Decision
	for _, cost := range costs {
		var err error
		if ds, err = l.AllowEach(t.Context(), "k", cost, ds[:0]); err != nil {
			t.Fatal(err)
		}
	}
	h := http.Header{}
	httplimit.AllFields.Write(h, time.Now(), ds...)
	return h
}

func canonical(fields map[string]string) http.Header {
	h := http.Header{}
	for name, value := range fields {
		h.Set(name, value)
	}
	return h
}

// What has no limit sets no field, and what a handler adds to its field stays there.
func TestFieldsLeftAlone(t *testing.T) {
	h := http.Header{}
	httplimit.AllFields.Write(h, time.Now())
	httplimit.AllFields.Write(h, time.Now(), headgate.Decision{})
	httplimit.AllFields.Write(h, time.Now(), headgate.Decision{Limit: headgate.Unlimited(), Remaining: 1})
	if len(h) != 0 {
		t.Errorf("fields %v for no limit", h)
	}
	ds, err := newLimiter(t, "1/h").AllowEach(t.Context(), "k", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	httplimit.AllFields.Write(h, time.Now(), ds...)
	for name, values := range h {
		h[name] = append(values, "added")
	}
	for name, values := range h {
		if len(values) != 2 || values[0] == "added" || values[1] != "added" {
			t.Errorf("%s: %q", name, values)
		}
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
		for _, name := range []string{"Ratelimit-Policy", "X-Ratelimit-Limit"} {
			w.Header().Add(name, "added")
		}
	}))
	for range 2 {
		r := get(t, h)
		if p := r.header["Ratelimit-Policy"]; !slices.Equal(p, []string{`"9/h";q=9;w=3600`, "added"}) {
			t.Errorf("policy %q", p)
		}
		if l := r.header["X-Ratelimit-Limit"]; !slices.Equal(l, []string{"9", "added"}) {
			t.Errorf("limit %q", l)
		}
	}
}

// However many limits there are, their policies are right, and few of them are kept.
func TestManyPolicies(t *testing.T) {
	limits := map[string][]headgate.Limit{}
	l, err := headgate.NewLimiterFunc(headgate.NewMemory(), func(_ context.Context, key string) ([]headgate.Limit, error) { return limits[key], nil })
	if err != nil {
		t.Fatal(err)
	}
	h := protect(t, l, httplimit.Options{Key: func(r *http.Request) string { return r.RemoteAddr }})
	for range 2 {
		for i := range int64(3000) {
			name := strconv.FormatInt(i, 10)
			if limits[name] == nil {
				limits[name] = []headgate.Limit{headgate.PerMinute(i + 1).Burst(i + 1)}
			}
			r := get(t, h, func(r *http.Request) { r.RemoteAddr = name })
			if got, want := r.header.Get("Ratelimit-Policy"), fmt.Sprintf(`"%d/m";q=%d;w=60`, i+1, i+1); got != want {
				t.Fatalf("policy %s; want %s", got, want)
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
		httplimit.AllFields:  {"Ratelimit-Policy", "Ratelimit", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"},
	} {
		h := protect(t, newLimiter(t, "1/h"), httplimit.Options{Fields: fields, Denied: func(http.ResponseWriter, *http.Request, []headgate.Decision) {}})
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
	if got := r.header["Ratelimit-Policy"]; len(got) != 2 || got[0] != `"all";q=100;w=60` || got[1] != `"page";q=10;w=60` {
		t.Errorf("policies %q", got)
	}
	if got := r.header["X-Ratelimit-Limit"]; len(got) != 1 || got[0] != "10" {
		t.Errorf("limit %q", got)
	}
}

// A client that waits for Retry-After is served, and not a second earlier. At X-Ratelimit-Reset,
// the key is back in its initial state.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, text := range []string{"7/m", "3/s", "90/m burst 4", "5/7s stepped", "4/10s fixed-window", "6/9s sliding-window", "5/11s sliding-log", "1000000/s burst 1"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { obey(t, text) })
		})
	}
}

func obey(t *testing.T, text string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var cost int64
	h := protect(t, newLimiter(t, text), httplimit.Options{Cost: func(*http.Request) int64 { return cost }})
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

// t of a grant by a bucket is true: until then nothing more is granted than r says,
// and then something is.
func TestUntilMore(t *testing.T) {
	for _, text := range []string{"7/m burst 3", "5/20s burst 12 stepped"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, text)
			random := rand.New(rand.NewPCG(3, 4))
			for range 500 {
				time.Sleep(time.Duration(random.Int64N(int64(8 * time.Second))))
				ds, err := l.AllowEach(t.Context(), "k", 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				h := http.Header{}
				httplimit.Draft10.Write(h, time.Now(), ds...)
				var r, until int64
				if _, err := scan(h.Get("Ratelimit"), &r, &until); err != nil {
					t.Fatal(err)
				}
				if until > 1 {
					time.Sleep(time.Duration(until-1) * time.Second)
					if d, _ := l.Peek(t.Context(), "k"); d.Remaining != r {
						t.Fatalf("%s: a second before t, %d remain; want %d", text, d.Remaining, r)
					}
				}
				time.Sleep(time.Duration(min(until, 1)) * time.Second)
				if d, _ := l.Peek(t.Context(), "k"); d.Remaining <= r {
					t.Fatalf("%s: at t, %d remain; want more than %d", text, d.Remaining, r)
				}
			}
		})
	}
}

// scan reads r and t of a RateLimit of one limit.
func scan(value string, r, t *int64) (int, error) {
	_, parameters, _ := strings.Cut(value, `";`)
	return fmt.Sscanf(parameters, "r=%d;t=%d", r, t)
}
