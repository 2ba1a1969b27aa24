package headgate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestConstructors(t *testing.T) {
	for _, c := range []struct {
		limit            Limit
		algorithm        Algorithm
		capacity, refill int64
		period           time.Duration
		rate, unit       int64
		text             string
	}{
		{PerMinute(100).Burst(20), AlgorithmTokenBucket, 20, 100, time.Minute, 1, 600_000,
			"100/m burst 20"},
		{PerSecond(3), AlgorithmTokenBucket, 3, 3, time.Second, 3, 1_000_000, "3/s"},
		{PerSecond(3_000_000).Burst(1), AlgorithmTokenBucket, 1, 3_000_000, time.Second, 3, 1,
			"3000000/s burst 1"},
		{SteppedTokenBucket(5, time.Hour).Burst(20), AlgorithmSteppedTokenBucket, 20, 5,
			time.Hour, 0, 0, "5/h burst 20 stepped"},
		{FixedWindow(7, 15*time.Minute), AlgorithmFixedWindow, 7, 0, 15 * time.Minute, 0, 0,
			"7/15m fixed-window"},
		{SlidingWindow(7, 36*time.Hour), AlgorithmSlidingWindow, 7, 0, 36 * time.Hour, 0, 0,
			"7/36h sliding-window"},
		{SlidingLog(7, 1500*time.Millisecond), AlgorithmSlidingLog, 7, 0,
			1500 * time.Millisecond, 0, 0, "7/1500ms sliding-log"},
	} {
		l := c.limit
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if l.Algorithm() != c.algorithm || l.Capacity() != c.capacity ||
			l.Refill() != c.refill || l.Period() != c.period {
			t.Errorf("%s: %v, capacity %d, refill %d, period %v", c.text, l.Algorithm(),
				l.Capacity(), l.Refill(), l.Period())
		}
		if r := l.rule; r.Rate != c.rate || r.Unit != max(c.unit, 1) {
			t.Errorf("%s: rate %d/%d, want %d/%d", c.text, r.Rate, r.Unit, c.rate, c.unit)
		}
		if l.String() != c.text || l.Name() != c.text || l.ID() != c.text {
			t.Errorf("%s: text %q, name %q, ID %q", c.text, l, l.Name(), l.ID())
		}
	}
}

func TestAlgorithmNames(t *testing.T) {
	for a, want := range map[Algorithm]string{
		0: "none", AlgorithmTokenBucket: "token-bucket", AlgorithmSteppedTokenBucket: "stepped",
		AlgorithmFixedWindow:   "fixed-window",
		AlgorithmSlidingWindow: "sliding-window", AlgorithmSlidingLog: "sliding-log",
		AlgorithmCalendarWindow: "calendar-window", 7: "none", 255: "none",
	} {
		if a.String() != want {
			t.Errorf("algorithm %d is %q, want %q", uint8(a), a.String(), want)
		}
	}
}

// Where the zero Limit is asked anything, it answers with nothing.
func TestZeroLimit(t *testing.T) {
	var l Limit
	if l.ID() != "" || l.Algorithm() != 0 || l.Capacity() != 0 || l.Refill() != 0 ||
		l.Period() != 0 {
		t.Errorf("ID %q, %v, capacity %d, refill %d, period %v", l.ID(), l.Algorithm(),
			l.Capacity(), l.Refill(), l.Period())
	}
	if l.String() != "invalid limit" || l.Validate() == nil {
		t.Errorf("%v is valid: %v", l, l.Validate())
	}
	if l == (PerSecond(1)) || l != (Limit{}) || l.Named("api").ID() != "" {
		t.Error("the zero Limit equals another, or has an ID")
	}
}

func TestNameAndID(t *testing.T) {
	bucket, log := PerMinute(100).Burst(20), SlidingLog(5, time.Second)
	for _, c := range []struct {
		limit    Limit
		name, id string
		remark   string
	}{
		{bucket, "100/m burst 20", "100/m burst 20", "unnamed: by its text"},
		{bucket.Named("api"), "api", "api", "a token bucket: by its name alone"},
		{SteppedTokenBucket(5, time.Second).Named("api"), "api", "api stepped",
			"a stepped one: by name and algorithm"},
		{log.Named("api"), "api", "api s sliding-log", "a window: by its length as well"},
		{SlidingLog(9, 90*time.Second).Named("api"), "api", "api 90s sliding-log",
			"which has one text"},
		{bucket.Named("api").Named("web"), "web", "web", "the last name counts"},
		{bucket.Named("api").Named(""), "100/m burst 20", "100/m burst 20", "unnamed again"},
		{bucket.Named(strings.Repeat("x", 64)), strings.Repeat("x", 64), strings.Repeat("x", 64),
			"64 letters"},
		{bucket.Named("A.b-c_9"), "A.b-c_9", "A.b-c_9", "every kind of letter"},
	} {
		if c.limit.Name() != c.name || c.limit.ID() != c.id {
			t.Errorf("%s: name %q, ID %q", c.remark, c.limit.Name(), c.limit.ID())
		}
		if err := c.limit.Validate(); err != nil {
			t.Errorf("%s: %v", c.remark, err)
		}
	}
	if id := bucket.Named("9").ID(); id != "" {
		t.Errorf("an invalid limit has the ID %q", id)
	}
}

func TestEqualTermsAreEqualLimits(t *testing.T) {
	makers := []func() Limit{
		func() Limit { return PerMinute(100).Burst(20) },
		func() Limit { return PerMinute(100).Burst(20).Named("api") },
		func() Limit { return FixedWindow(20, time.Minute) },
		func() Limit { return Per(0, 0).Burst(0) }, // an invalid one, too
		func() Limit { return must(ParseLimit("7/h burst 9")) },
	}
	set := map[Limit]int{}
	for i, again := range makers {
		set[again()] = i
	}
	runtime.GC()
	for i, again := range makers {
		if l := again(); l != again() {
			t.Errorf("limit %d is not equal to itself made again", i)
		}
		if found, ok := set[again()]; !ok || found != i {
			t.Errorf("limit %d was found in the map as %d, %v", i, found, ok)
		}
	}
	if len(set) != len(makers) {
		t.Errorf("%d limits are %d keys of a map", len(makers), len(set))
	}
	if PerMinute(100).Burst(20) != Per(100, time.Minute).Burst(20) {
		t.Error("the same bucket by two names is not the same")
	}
	if PerSecond(2).Burst(4) == Per(4, 2*time.Second).Burst(4) {
		t.Error("2/s and 4/2s have texts of their own and are equal")
	}
}

// The largest numbers that are accepted, and one more.
func TestLargestNumbers(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		largest int64
		of      func(n int64) Limit
		remark  string
	}{
		{maxExact / 2 / 1_000_000, func(n int64) Limit { return PerSecond(3).Burst(n) },
			"3/s counts in millionths"},
		{maxExact / 2, func(n int64) Limit { return PerSecond(5_000_000).Burst(n) },
			"5 a microsecond counts in tokens"},
		{maxExact / 2 / 3_600_000_000, func(n int64) Limit { return PerHour(7).Burst(n) }, "7/h"},
		{1<<62/3_600_000_000 - 1,
			func(n int64) Limit { return SteppedTokenBucket(1000, time.Hour).Burst(n) },
			"steps of an hour"},
		{maxExact / 3_600_000_000 * 7,
			func(n int64) Limit { return SteppedTokenBucket(7, time.Hour).Burst(n) },
			"steps of 7 for 285 years"},
		{maxExact, func(n int64) Limit { return FixedWindow(n, day) }, "a plain count"},
		{1<<32 - 1, func(n int64) Limit { return SlidingWindow(n, time.Second) },
			"two counts in one word"},
		{maxExact / 2 / 86_400_000_000, func(n int64) Limit { return SlidingWindow(n, day) },
			"weighed by microseconds of a day"},
		{maxLog, func(n int64) Limit { return SlidingLog(n, day) }, "every grant kept"},
	} {
		if err := c.of(c.largest).Validate(); err != nil {
			t.Errorf("%s: %v", c.remark, err)
		}
		err := c.of(c.largest + 1).Validate()
		if err == nil || !strings.Contains(
			err.Error(), fmt.Sprintf("is %d; want at most %d ", c.largest+1, c.largest)) {
			t.Errorf("%s: one more gives the error %v", c.remark, err)
		}
	}
	longest := time.Duration(maxExact) * time.Microsecond
	if err := FixedWindow(1, longest).Validate(); err != nil {
		t.Errorf("the longest window: %v", err)
	}
	if err := FixedWindow(1, longest+time.Microsecond).Validate(); err == nil {
		t.Error("a window longer than the longest is valid")
	}
	if err := FixedWindow(1, math.MaxInt64).Validate(); err == nil {
		t.Error("a window of MaxInt64 ns is valid")
	}
}

// A fixed window of 0 is a limit that denies all, such as for a blocked plan. It has a text, a
// share and a name, as all limits.
func TestLimitOfZero(t *testing.T) {
	l := FixedWindow(0, time.Hour)
	for text, l := range map[string]Limit{"0/h fixed-window": l,
		"blocked=0/h fixed-window": l.Named("blocked")} {
		parsed, err := ParseLimit(text)
		if err != nil || parsed != l || l.String() != text {
			t.Errorf("%s is read as %s, %v; and %s", text, parsed, err, l)
		}
	}
	for _, n := range []int{0, 1, 7, math.MaxInt} {
		if s := l.Share(n); s.Capacity() != 0 || s.Validate() != nil || s.Period() != time.Hour {
			t.Errorf("the share of %d is %s, %v", n, s, s.Validate())
		}
	}
	limiter, err := NewLimiterFunc(
		NewMemory(), func(_ context.Context, key string) ([]Limit, error) {
			if key == "blocked" {
				return []Limit{l}, nil
			}
			return []Limit{PerHour(5)}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := limiter.Allow(t.Context(), "blocked"); err != nil || d.RetryAfter != Never {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if err := limiter.Wait(t.Context(), "blocked"); err == nil || Unavailable(t.Context(), err) {
		t.Errorf("Wait: %v", err)
	}
	if n, d, err := limiter.AllowUpTo(t.Context(), "blocked", 5); n != 0 ||
		d.RetryAfter != Never || err != nil {
		t.Errorf("AllowUpTo: %d, %+v, %v", n, d, err)
	}
	if d, err := limiter.Allow(t.Context(), "other"); err != nil || !d.Allowed() {
		t.Errorf("%+v, %v", d, err)
	}
}
