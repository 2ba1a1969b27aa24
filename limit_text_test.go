package headgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseLimit(t *testing.T) {
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	for _, c := range []struct {
		text  string
		want  Limit
		canon string // "": the text itself
	}{
		// The canonical forms.
		{"100/m", PerMinute(100), ""},
		{"100/m burst 20", PerMinute(100).Burst(20), ""},
		{"5/15m sliding-log", SlidingLog(5, 15*time.Minute), ""},
		{"5/s stepped", SteppedTokenBucket(5, time.Second).Burst(5), ""},
		{"5/s burst 8 stepped", SteppedTokenBucket(5, time.Second).Burst(8), ""},
		{"5/s fixed-window", FixedWindow(5, time.Second), ""},
		{"5/s sliding-window", SlidingWindow(5, time.Second), ""},
		{"api=1000/d fixed-window", FixedWindow(1000, day).Named("api"), ""},
		{"A.b-c_9=1/s", PerSecond(1).Named("A.b-c_9"), ""},
		{"9007199254740991/s fixed-window", FixedWindow(maxExact, time.Second), ""},

		// Every unit, the longest first.
		{"3/w", Per(3, week).Burst(3), ""},
		{"3/d", Per(3, day).Burst(3), ""},
		{"3/h", PerHour(3), ""},
		{"3/m", PerMinute(3), ""},
		{"3/s", PerSecond(3), ""},
		{"3/ms", Per(3, time.Millisecond).Burst(3), ""},
		{"3/us", Per(3, time.Microsecond).Burst(3), ""},
		{"3/10d", Per(3, 10*day).Burst(3), ""},
		{"3/90m", Per(3, 90*time.Minute).Burst(3), ""},
		{"3/1000001us", Per(3, time.Second+time.Microsecond).Burst(3), ""},
		{"1/9007199254740991us fixed-window", FixedWindow(1, maxExact*time.Microsecond), ""},

		// The same in other words.
		{"3/week", Per(3, week).Burst(3), "3/w"},
		{"3/day", Per(3, day).Burst(3), "3/d"},
		{"3/hour", PerHour(3), "3/h"},
		{"3/minute", PerMinute(3), "3/m"},
		{"3/min", PerMinute(3), "3/m"},
		{"3/second", PerSecond(3), "3/s"},
		{"3/sec", PerSecond(3), "3/s"},
		{"3/µs", Per(3, time.Microsecond).Burst(3), "3/us"},
		{"3/1h30m", Per(3, 90*time.Minute).Burst(3), "3/90m"},
		{"3/60s", PerMinute(3), "3/m"},
		{"3/7d", Per(3, week).Burst(3), "3/w"},
		{"3/1d1us", Per(3, day+time.Microsecond).Burst(3), "3/86400000001us"},
		{"3/1500ms", Per(3, 1500*time.Millisecond).Burst(3), ""},
		{"100/m gcra", PerMinute(100), "100/m"},
		{"100/m leaky-bucket burst 7", PerMinute(100).Burst(7), "100/m burst 7"},
		{"100/m token-bucket", PerMinute(100), "100/m"},
		{"100/m burst 100", PerMinute(100), "100/m"},
		{"5/s stepped burst 8", SteppedTokenBucket(5, time.Second).Burst(8), "5/s burst 8 stepped"},
		{"  api = 5/s \t burst\n8 ", PerSecond(5).Burst(8).Named("api"), "api=5/s burst 8"},
		{"007/s burst 08", PerSecond(7).Burst(8), "7/s burst 8"},

		// Fractions: a bucket holds the count rounded up.
		{"1.5/s", Per(3, 2*time.Second).Burst(2), "3/2s burst 2"},
		{"0.5/m", Per(1, 2*time.Minute).Burst(1), "1/2m"},
		{"0.1/s", Per(1, 10*time.Second).Burst(1), "1/10s"},
		{"1.50/s", Per(3, 2*time.Second).Burst(2), "3/2s burst 2"},
		{"2.0/s", PerSecond(2), "2/s"},
		{"2.25/s burst 10 stepped", SteppedTokenBucket(9, 4*time.Second).Burst(10),
			"9/4s burst 10 stepped"},
		{"0.000000001/s", Per(1, 1e9*time.Second).Burst(1), "1/1000000000s"},
		{"5.0/s sliding-log", SlidingLog(5, time.Second), "5/s sliding-log"},
	} {
		l, err := ParseLimit(c.text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if l != c.want {
			t.Errorf("%q is %v, want %v", c.text, l, c.want)
		}
		if c.canon == "" {
			c.canon = c.text
		}
		if l.String() != c.canon {
			t.Errorf("%q has the text %q, want %q", c.text, l, c.canon)
		}
		if back, err := ParseLimit(l.String()); back != l {
			t.Errorf("%q, read back from %q, is %v, %v", c.text, l, back, err)
		}
	}
}

func TestLimitInJSON(t *testing.T) {
	type config struct {
		Limit  Limit           `json:"limit,omitzero"`
		Limits []Limit         `json:"limits,omitempty"`
		Plans  map[Limit]int64 `json:"plans,omitempty"`
	}
	for _, c := range []struct {
		config config
		text   string
	}{
		{config{}, `{}`},
		{config{Limit: PerMinute(100).Burst(20)}, `{"limit":"100/m burst 20"}`},
		{config{Limits: []Limit{FixedWindow(5, time.Second).Named("api"),
			SlidingLog(1, time.Hour)}},
			`{"limits":["api=5/s fixed-window","1/h sliding-log"]}`},
		{config{Plans: map[Limit]int64{PerSecond(1): 7}}, `{"plans":{"1/s":7}}`},
	} {
		text, err := json.Marshal(c.config)
		if err != nil || string(text) != c.text {
			t.Errorf("%s: got %s, %v", c.text, text, err)
		}
		var back config
		if err := json.Unmarshal([]byte(c.text), &back); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if fmt.Sprint(back) != fmt.Sprint(c.config) || back.Limit != c.config.Limit {
			t.Errorf("%s: read back %v, want %v", c.text, back, c.config)
		}
	}

	kept := config{Limit: PerSecond(1)}
	err := json.Unmarshal([]byte(`{"limit":"fast"}`), &kept)
	if fault := (*InvalidError)(nil); !errors.As(err, &fault) {
		t.Errorf("an unreadable limit gives %v", err)
	}
	if kept.Limit != PerSecond(1) {
		t.Errorf("an unreadable limit changed the one that was there to %v", kept.Limit)
	}
	if _, err := json.Marshal([]Limit{FixedWindow(0, 0)}); err == nil {
		t.Error("an invalid limit has a text")
	}
	if s := FixedWindow(0, 0).String(); s != "invalid limit" {
		t.Errorf("an invalid limit is shown as %q", s)
	}
}

// TestErrorLines holds every error line about a limit in one file to be read by
// a person: each must name the field, the value and what would be accepted.
func TestErrorLines(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	var lines bytes.Buffer
	line := func(what string, err error) {
		fault := (*InvalidError)(nil)
		if !errors.As(err, &fault) || fault.Field == "" || fault.Value == "" || fault.Want == "" {
			t.Errorf("%s: %#v names no field, value or what would be accepted", what, err)
			return
		}
		if strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%s: %q is more than one line", what, err)
		}
		fmt.Fprintf(&lines, "%s\n\t%v\n", what, err)
	}

	for _, text := range []string{
		"", " ", "fast", "5 per minute", "api=5 per minute", "5", "5/", "/s", "/", "=", "=5/s",
		" =5/s", " = ",
		"0/s", "-1/m", "-0.5/m", "0.0/s", "1e30/s", "1e3/s", "+5/s", "1,000/s", "٣/s", ".5/s",
		"5x/s", "1.2.3/s", "NaN/s", "0x10/s", "1_000/s",
		"9007199254740992/s", "99999999999999999999/s", "0.0000000001/s",
		"10/0s", "10/0", "10/-1s", "10/15", "10/parsec", "10/S", "10/1.5s", "10/s30", "10/ s",
		"10/99999999w", "10/99999999999999999999s", "10/15000w 5s",
		"0.000000001/1000w",
		"10/s burst", "10/s burst 0", "10/s burst -1", "10/s burst x", "10/s burst 1.5",
		"10/s burst 99999999999999999999", "10/s burst 5 burst 6",
		"10/month tz", "10/month tz UTC tz UTC", "10/month tz Europe/Zuric", "10/month tz Local",
		"10/month tz ../UTC",
		"10/h tz UTC", "10/31d tz UTC", "10/month anchor 0", "10/month anchor x",
		"10/month anchor -3", "10/month anchor 04-17",
		"10/year anchor 17", "10/year anchor 02-30", "10/year anchor x", "10/day anchor 3",
		"10/week anchor monday", "10/month stepped", "10/month burst 3", "1.5/month", "0/month",
		"10/s fast", "10/s gcra stepped", "10/s Token-Bucket", "10/s 20",
		"10/s fixed-window burst 5", "1.5/s fixed-window", "0.5/m sliding-log",
		"9007199254740991/d sliding-window", "65536/s sliding-log", "9007199254740991/s",
		"1000/7us burst 9007199254740991", "10/h burst 40000000", "1/w burst 1000000 stepped",
		"9api=5/s", "a b=5/s", "a=b=5/s", "é=5/s", strings.Repeat("x", 65) + "=5/s", "a/b=5/s",
	} {
		_, err := ParseLimit(text)
		line(fmt.Sprintf("ParseLimit(%q)", text), err)
	}
	for _, c := range []struct {
		call  string
		limit Limit
	}{
		{"Limit{}", Limit{}},
		{`Limit{}.Named("api")`, Limit{}.Named("api")},
		{"TokenBucket(0, 1, 1s)", PerSecond(1).Burst(0)},
		{"TokenBucket(-1, 1, 1s)", PerSecond(1).Burst(-1)},
		{"TokenBucket(1, 0, 1s)", PerSecond(0).Burst(1)},
		{"TokenBucket(1, -1, 1s)", PerSecond(-1).Burst(1)},
		{"TokenBucket(1, MinInt64, 1s)", PerSecond(math.MinInt64).Burst(1)},
		{"TokenBucket(1, 1, 0)", Per(1, 0).Burst(1)},
		{"TokenBucket(1, 1, -1s)", Per(1, -time.Second).Burst(1)},
		{"TokenBucket(1, 1, 1ns)", Per(1, time.Nanosecond).Burst(1)},
		{"TokenBucket(1, 1, 1µs + 1ns)", Per(1, time.Microsecond+time.Nanosecond).Burst(1)},
		{"TokenBucket(1, 1, 200y)", Per(1, 2*century).Burst(1)},
		{"TokenBucket(1, 1, MaxInt64)", Per(1, math.MaxInt64).Burst(1)},
		{"TokenBucket(MaxInt64, 3, 1s)", PerSecond(3).Burst(math.MaxInt64)},
		{"TokenBucket(1e10, 7, 1h)", PerHour(7).Burst(1e10)},
		{"PerMinute(0)", PerMinute(0)},
		{"TokenBucket(10, MaxInt64, 1s)", PerSecond(math.MaxInt64).Burst(10)},
		{"TokenBucket(10, 2^53, 1s)", PerSecond(maxExact + 1).Burst(10)},
		{"SteppedTokenBucket(10, 2^53, 1s)", SteppedTokenBucket(maxExact+1, time.Second).Burst(10)},
		{"SteppedTokenBucket(0, 1, 1s)", SteppedTokenBucket(1, time.Second).Burst(0)},
		{"SteppedTokenBucket(1, 0, 1s)", SteppedTokenBucket(0, time.Second).Burst(1)},
		{"SteppedTokenBucket(1e10, 1, 1h)", SteppedTokenBucket(1, time.Hour).Burst(1e10)},
		{"SteppedTokenBucket(MaxInt64, 1e15, 1s)",
			SteppedTokenBucket(1e15, time.Second).Burst(math.MaxInt64)},
		{"FixedWindow(-1, 1s)", FixedWindow(-1, time.Second)},
		{"FixedWindow(1, 0)", FixedWindow(1, 0)},
		{"FixedWindow(MaxInt64, 1s)", FixedWindow(math.MaxInt64, time.Second)},
		{"SlidingWindow(1e10, 1s)", SlidingWindow(1e10, time.Second)},
		{"SlidingWindow(1e6, 720h)", SlidingWindow(1e6, 720*time.Hour)},
		{"SlidingWindow(1, 200y)", SlidingWindow(1, 2*century)},
		{"SlidingLog(65536, 1s)", SlidingLog(65536, time.Second)},
		{`FixedWindow(1, 1s).Named(" ")`, FixedWindow(1, time.Second).Named(" ")},
		{`FixedWindow(1, 1s).Named("a b")`, FixedWindow(1, time.Second).Named("a b")},
		{`FixedWindow(1, 1s).Named("a\n")`, FixedWindow(1, time.Second).Named("a\n")},
		{`FixedWindow(1, 1s).Named("\xff")`, FixedWindow(1, time.Second).Named("\xff")},
		{`FixedWindow(1, 1s).Named("-a")`, FixedWindow(1, time.Second).Named("-a")},
	} {
		line(c.call, c.limit.Validate())
	}

	fine := FixedWindow(1, time.Second)
	for _, at := range []time.Time{time.Unix(-1, 0), time.Unix(0, 0), time.Unix(0, 999),
		time.UnixMicro(maxExact), time.Unix(1<<50, 0), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
		r := Request{Limit: fine, At: at.UTC()}
		line(fmt.Sprintf("Request{At: %d s + %d ns}", at.Unix(), at.Nanosecond()), r.Validate())
	}
	m := NewMemorySize(1)
	limiter := must(NewLimiter(m, fine))
	_, err := m.Take(t.Context(), Request{Limit: fine, At: time.Unix(-1, 0).UTC()})
	line("Take at -1 s", err)
	_, err = NewLimiter(nil, fine)
	line("NewLimiter(nil, 1/s)", err)
	_, err = NewLimiter((*Memory)(nil), fine)
	line("NewLimiter((*Memory)(nil), 1/s)", err)
	_, err = NewLimiter(m, Unlimited())
	line("NewLimiter(Unlimited)", err)
	_, err = NewLimiter(m)
	line("NewLimiter()", err)
	_, err = NewLimiter(m, fine, Limit{})
	line("NewLimiter(1/s, Limit{})", err)
	_, err = NewLimiter(m, fine, PerMinute(0))
	line("NewLimiter(1/s, PerMinute(0))", err)
	_, err = NewLimiter(m, fine, fine)
	line("NewLimiter(1/s, 1/s)", err)
	_, err = NewLimiter(m, fine.Named("api"), FixedWindow(2, time.Second).Named("api"))
	line("NewLimiter(api=1/s, api=2/s)", err)
	line("SetLimits()", limiter.SetLimits())
	chosen, _ := NewLimiterFunc(
		m, func(context.Context, string) ([]Limit, error) { return nil, nil })
	line("SetLimits of NewLimiterFunc", chosen.SetLimits(fine))
	_, err = limiter.AllowN(t.Context(), "k", 0)
	line("AllowN(0)", err)
	_, err = limiter.AllowN(t.Context(), "k", math.MinInt64)
	line("AllowN(MinInt64)", err)
	_, err = limiter.Refund(t.Context(), "k", -1)
	line("Refund(-1)", err)
	line("TakeAll of 2 requests and 1 decision",
		m.TakeAll(t.Context(), make([]Request, 2), make([]Decision, 1)))

	golden(t, "testdata/errors.txt", lines.Bytes())
}

// golden holds got to the file, or writes it if the tests run with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gots, wants := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gots), len(wants)) {
		g, w := "nothing", "nothing"
		if i < len(gots) {
			g = gots[i]
		}
		if i < len(wants) {
			w = wants[i]
		}
		if g != w {
			t.Fatalf(
				"line %d of %s differs; go test -run %s -update writes it anew\n got %s\nwant %s",
				i+1, file, t.Name(), g, w)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{
		"100/m burst 20", "api=1000/d fixed-window", "1.5/s", "0.5/m stepped",
		"5/1h30m sliding-log", "7/µs sliding-window", "3/s gcra",
		"", "=", "/", "1/", "1./s", "-1/s", "9007199254740991/9007199254740991us",
		"0.000000001/285w", "0/d fixed-window", "-0/d sliding-log",
		"x=1/s burst 9223372036854775807", "\xff=\xff/\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit(text)
		if err != nil {
			fault := (*InvalidError)(nil)
			if !errors.As(err, &fault) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q gives the error %q", text, err)
			}
			if l != (Limit{}) {
				t.Errorf("%q gives an error and %v", text, l)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Errorf("%q is read and not valid: %v", text, err)
		}
		if back, err := ParseLimit(l.String()); back != l {
			t.Errorf("%q has the text %q, which is %v, %v", text, l, back, err)
		}
		if l.ID() == "" || l.Capacity() < 0 || l.Capacity() == 0 &&
			l.Algorithm() != AlgorithmFixedWindow || l.Period() < time.Microsecond {
			t.Errorf("%q has ID %q, capacity %d, period %v", text, l.ID(), l.Capacity(), l.Period())
		}
	})
}
