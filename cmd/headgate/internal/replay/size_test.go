package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

func sized(t *testing.T, c replay.SizeConfig, texts ...string) *replay.SizeReport {
	t.Helper()
	c.Reading = usual
	report, err := replay.Size(t.Context(), c, logsOf(texts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// denials replays a log under limits.
func denials(t *testing.T, log string, limits ...headgate.Limit) []replay.Result {
	t.Helper()
	report, err := replay.Run(t.Context(), replay.Config{Limits: limits, Reading: usual}, logsOf(log)...)
	if err != nil {
		t.Fatal(err)
	}
	return report.Limits
}

// at is a request in JSON, microseconds after 12 January 2026.
func at(micros int64, key string) string {
	return fmt.Sprintf(`{"ts":%d.%06d,"ip":"198.18.0.%s"}`+"\n", 1768176000+micros/1e6, micros%1e6, key)
}

// mustBeSmallest replays each limit of report, which must deny what it says and no more than its
// share, and the limit of one token less, which must deny more.
func mustBeSmallest(t *testing.T, log string, report *replay.SizeReport) {
	t.Helper()
	var limits []headgate.Limit
	var checks []func(replay.Result)
	check := func(l headgate.Limit, f func(replay.Result)) {
		limits, checks = append(limits, l), append(checks, f)
	}
	same := func(l headgate.Limit, denied, keys int64) {
		check(l, func(r replay.Result) {
			if r.Denied != denied || r.DeniedKeys != keys {
				t.Errorf("%s: replay denies %d of %d keys, size says %d of %d", l, r.Denied, r.DeniedKeys, denied, keys)
			}
		})
	}
	for _, fit := range slices.Concat(report.Periods, report.Rates) {
		for i, f := range fit.Fits {
			most := report.Requests * []int64{0, 1, 10, 100}[i] / 10_000
			if f.Point.Denied > most {
				t.Errorf("%s denies %d, more than %d", f.Point.Limit, f.Point.Denied, most)
			}
			same(f.Point.Limit, f.Point.Denied, f.Point.DeniedKeys)
			n := f.Point.Size - 1
			less := headgate.Per(n, f.Point.Limit.Period())
			if fit.Rate != "" {
				less = f.Point.Limit.Burst(n)
			}
			if n == 0 {
				continue
			}
			check(less, func(r replay.Result) {
				if r.Denied <= most {
					t.Errorf("%s for %v is not the smallest: %s denies %d", f.Point.Limit, f.MaxShare, less, r.Denied)
				}
			})
		}
	}
	for _, p := range report.Proposals {
		same(p.Limit, p.Denied, p.DeniedKeys)
	}
	for i, r := range denials(t, log, limits...) {
		checks[i](r)
	}
}

// Ten requests at once and one in each of the next 60 seconds: the answers are known.
func TestSizeKnown(t *testing.T) {
	var log strings.Builder
	for range 10 {
		log.WriteString(at(0, "1"))
	}
	for i := range int64(60) {
		log.WriteString(at((i+1)*1e6, "1") + at(i*1e6, "2"))
	}
	rates := []headgate.Limit{headgate.PerSecond(1), headgate.PerMinute(30), headgate.PerDay(1)}
	report := sized(t, replay.SizeConfig{Rates: rates}, log.String())
	// In t seconds there are 10 + t requests: n must be at least (10 + t) / (1 + t / period).
	for i, want := range []string{"10/s", "10/10s", "35/m", "66/15m", "69/h"} {
		if got := report.Periods[i].Fits[0].Point.Limit.String(); got != want {
			t.Errorf("%s needs %s, want %s", report.Periods[i].Period, got, want)
		}
	}
	for i, want := range []string{"1/s burst 10", "30/m burst 40", "1/d burst 70"} {
		if got := report.Rates[i].Fits[0].Point.Limit.String(); got != want {
			t.Errorf("%s needs %s, want %s", report.Rates[i].Rate, got, want)
		}
	}
	mustBeSmallest(t, log.String(), report)
}

// randomLog has requests of keys of all kinds: bursts, regular ones, busy ones.
func randomLog(r *rand.Rand, requests, keys int, whole bool) string {
	var log strings.Builder
	now := int64(0)
	for range requests {
		switch r.IntN(20) {
		case 0:
			now += r.Int64N(200e6)
		case 1, 2, 3:
			now += r.Int64N(3e6)
		default:
			now += r.Int64N(100e3)
		}
		when := now
		if whole {
			when = now / 1e6 * 1e6
		}
		key := min(int(r.ExpFloat64()*float64(keys)/6), keys-1)
		log.WriteString(at(when, fmt.Sprint(key)))
	}
	return log.String()
}

// Each limit is the first of all of its period, or rate, that denies no more than the share: all
// are tried by replay, from 1.
func TestSizeByNaiveSearch(t *testing.T) {
	t.Parallel()
	periods := []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour, 1234567 * time.Microsecond}
	rates := []headgate.Limit{headgate.PerSecond(1), headgate.Per(7, 3*time.Minute), headgate.PerHour(11)}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		requests := []int{1, 40, 300, 1100}[round%4]
		log := randomLog(r, requests, 1+r.IntN(9), round%3 == 0)
		report := sized(t, replay.SizeConfig{Periods: periods, Rates: rates}, log)
		for _, fit := range slices.Concat(report.Periods, report.Rates) {
			mustBeFirst(t, log, fit, report.Requests)
		}
		mustBeSmallest(t, log, report)
	}
}

// In a log of 10,000 requests, 0.01% is one.
func TestSizeOneInTenThousand(t *testing.T) {
	t.Parallel()
	log := randomLog(rand.New(rand.NewPCG(15, 16)), 10_500, 9, false)
	report := sized(t, replay.SizeConfig{Periods: []time.Duration{time.Minute}}, log)
	mustBeFirst(t, log, report.Periods[0], report.Requests)
	if f := report.Periods[0].Fits; f[0].Point.Size == f[1].Point.Size {
		t.Errorf("%+v and %+v are the same, so that this proves nothing", f[0].Point, f[1].Point)
	}
}

func mustBeFirst(t *testing.T, log string, fit replay.SmallestLimits, requests int64) {
	t.Helper()
	var all []headgate.Limit
	for n := range fit.Fits[0].Point.Size {
		if fit.Rate == "" {
			all = append(all, headgate.Per(n+1, time.Duration(fit.Period)))
			continue
		}
		rate, err := headgate.ParseLimit(fit.Rate)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rate.Burst(n+1))
	}
	results := denials(t, log, all...)
	for i, f := range fit.Fits {
		most := requests * []int64{0, 1, 10, 100}[i] / 10_000
		for _, r := range results {
			if r.Denied <= most {
				if r.Limit != f.Point.Limit {
					t.Errorf("%v of %d requests: %s, by naive search %s", f.MaxShare, requests, f.Point.Limit, r.Limit)
				}
				break
			}
		}
	}
}

// A bot among many clients is set aside: without its lines, the log needs the same.
func TestSizeStandOut(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	var clients, all strings.Builder
	for i := range int64(4000) {
		line := at(i*250e3, fmt.Sprint(r.IntN(40)))
		clients.WriteString(line)
		all.WriteString(line)
		if i%2 == 0 {
			all.WriteString(strings.Repeat(at(i*250e3, "200"), 3))
		}
	}
	got := sized(t, replay.SizeConfig{}, all.String())
	if s := got.StandOut; s == nil || len(s.Keys) != 1 || s.Keys[0].Key != "198.18.0.200" || s.Rest.DeniedKeys != 1 {
		t.Fatalf("%+v, want one key that stands out", got.StandOut)
	}
	first, last := time.Unix(1768176000, 0).UTC(), time.UnixMicro(1768176000e6+3998*250e3).UTC()
	if k := got.StandOut.Keys[0]; k.From != first || k.To != last {
		t.Errorf("it comes from %s to %s, want %s to %s", k.From, k.To, first, last)
	}
	want := sized(t, replay.SizeConfig{}, clients.String())
	for i, fit := range got.Periods {
		for j, f := range fit.Rest {
			if w := want.Periods[i].Fits[j]; f.Point.Limit != w.Point.Limit || f.Point.Denied != w.Point.Denied {
				t.Errorf("%s without the bot: %+v, want %+v", fit.Period, f.Point, w.Point)
			}
		}
	}
	mustBeSmallest(t, all.String(), got)
}

func TestSizeEdges(t *testing.T) {
	one := sized(t, replay.SizeConfig{}, line("198.18.0.1", 1))
	for _, fit := range one.Periods {
		if fit.Enough || fit.Fits[0].Point.Size != 1 || fit.Fits[0].Point.Denied != 0 {
			t.Errorf("one line: %+v", fit)
		}
	}
	if len(one.Proposals) != 3 || one.Proposals[0].Limit.String() != "1/s" {
		t.Errorf("one line: %+v", one.Proposals)
	}
	if none := sized(t, replay.SizeConfig{}, "\n"); none.Requests != 0 || len(none.Periods) != 0 {
		t.Errorf("no line: %+v", none)
	}
	if _, err := replay.Size(t.Context(), replay.SizeConfig{Reading: usual}, logsOf("nonsense\n")...); err == nil {
		t.Error("a log in no format: no error")
	}
	mixed := sized(t, replay.SizeConfig{}, line("198.18.0.1", 1)+"nonsense\n\xff\n"+line("198.18.0.1", 1))
	if mixed.Skipped != 2 || mixed.Periods[0].Fits[0].Point.Limit.String() != "2/s" {
		t.Errorf("a broken log: %+v", mixed)
	}
	out, err := json.Marshal(one)
	if err != nil || bytes.Contains(out, []byte("null,\"proposals\"")) {
		t.Errorf("%s, %v", out, err)
	}
}

// Times with the zones of summer and winter are one line of time; a clock that jumps is sorted, or
// late, as by replay.
func TestSizeClocks(t *testing.T) {
	const form = "%s - - [26/Oct/2025:%02d:%02d:%02d %s] \"GET / HTTP/1.1\" 200 5\n"
	var summer, jumps strings.Builder
	for i := range 240 { // from 01:00 to 02:59 in summer time, and again from 02:00 in winter time
		minute := i % 60
		hour, zone := 1+i/60, "+0200"
		if i >= 120 {
			hour, zone = i/60, "+0100"
		}
		fmt.Fprintf(&summer, form, "198.18.0.1", hour, minute, i%7, zone)
	}
	report := sized(t, replay.SizeConfig{}, summer.String())
	if span := report.Span.To.Sub(report.Span.From).Round(time.Minute); span != 239*time.Minute {
		t.Errorf("the span is %s, want 3h59m", span)
	}
	mustBeSmallest(t, summer.String(), report)
	r := rand.New(rand.NewPCG(9, 10))
	for i := range int64(600) {
		jumps.WriteString(at((i+3600*int64(r.IntN(30)/29))*1e6, fmt.Sprint(r.IntN(3))))
	}
	report = sized(t, replay.SizeConfig{}, jumps.String())
	if report.Late == 0 {
		t.Error("no request is late, so that this proves nothing")
	}
	mustBeSmallest(t, jumps.String(), report)
}

func TestSizeManyKeys(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	const keys = 50_000
	for range 2 {
		for i := range keys {
			log.WriteString(line(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), 1))
		}
	}
	report := sized(t, replay.SizeConfig{}, log.String())
	if f := report.Periods[0].Fits; report.Keys != keys || f[0].Point.Limit.String() != "2/s" || f[3].Point.Size != 2 {
		t.Errorf("%+v", f)
	}
}

// Recorded logs, and those of $HEADGATE_LOGS, a pattern of file names.
func TestSizeRecorded(t *testing.T) {
	t.Parallel()
	files := []string{shopDay, "testdata/blog-slice.log"}
	more, err := filepath.Glob(os.Getenv("HEADGATE_LOGS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		log, err := os.ReadFile(file) //nolint:gosec // whoever runs the test names the files
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			if log, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			mustBeSmallest(t, string(log), sized(t, replay.SizeConfig{}, string(log)))
			limits := []string{"60/m", "10/h burst 3", "5/15m fixed-window", "3/10s sliding-log"}
			detailed(t, config(t, "ip", limits...), string(log))
			detailed(t, config(t, "ip,path", limits...), string(log))
		})
	}
}

// Logs of two days that are three years apart have a gap.
func TestSizeGap(t *testing.T) {
	const day = 86400
	var log strings.Builder
	for _, start := range []int64{0, 1000 * day} {
		for i := int64(0); i < day; i += 100 {
			log.WriteString(at((start+i)*1e6, fmt.Sprint(i%30)))
		}
	}
	got := sized(t, replay.SizeConfig{Periods: []time.Duration{time.Minute, 24 * time.Hour}}, log.String())
	if got.Periods[1].Enough {
		t.Error("the span is enough for a day")
	}
	var texts []string
	for _, c := range got.Caveats[:2] {
		texts = append(texts, c.ID+": "+c.Text)
	}
	want := []string{
		"gap: no requests from 2026-01-12 23:58:20 to 2028-10-08 00:00:00 UTC: the logs may not belong together",
		"span: the span is 47h57m without the longest gap, too short for limits for more than about 4h48m (here 1d)",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("caveats %q, want %q", texts, want)
	}
}

// The span and its tenth are rounded to two units, and the periods that are too long are named.
func TestSizeSpan(t *testing.T) {
	t.Parallel()
	for span, want := range map[int64]string{
		7199:           "2h, too short for limits for more than about 12m (here 15m, 1h)",
		3799:           "1h3m, too short for limits for more than about 6m20s (here 15m, 1h)",
		600:            "10m, too short for limits for more than about 1m (here 15m, 1h)",
		9:              "9s, too short for limits for more than about 900ms (here 1s, 10s, 1m, 15m, 1h)",
		3 * 86400:      "3d, too short for limits for more than about 7h12m",
		3*86400 + 3500: "3d1h, too short for limits for more than about 7h18m",
	} {
		var log strings.Builder
		for i := range int64(10) {
			log.WriteString(at(i*span*1e6/9, "1"))
		}
		got := sized(t, replay.SizeConfig{}, log.String())
		i := slices.IndexFunc(got.Caveats, func(c replay.Caveat) bool { return c.ID == "span" })
		if text := got.Caveats[i].Text; text != "the span is "+want {
			t.Errorf("%ds: %q, want %q", span, text, want)
		}
	}
}

func TestSizeBadConfig(t *testing.T) {
	for _, c := range []replay.SizeConfig{
		{Periods: []time.Duration{1000 * 24 * time.Hour}},
		{Periods: make([]time.Duration, 21)},
		{Rates: []headgate.Limit{headgate.FixedWindow(1, time.Second)}},
	} {
		if _, err := replay.Size(t.Context(), c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// Size ends with its context, also after the logs are read.
func TestSizeCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := replay.SizeConfig{Reading: usual, Searching: cancel}
	report, err := replay.Size(ctx, c, logsOf(line("198.18.0.1", 1))...)
	if report != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want none and Canceled", report, err)
	}
}

// There is nothing to decide about a key that needs more than the others only for a period that
// the proposals do not have: one that the span is too short for, or is not chosen.
func TestSizeStandOutByUnusedPeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bot     int // requests a second
		periods []time.Duration
	}{
		{2, []time.Duration{time.Second, time.Hour}},
		{1, []time.Duration{time.Second, time.Minute}},
	} {
		var log strings.Builder
		for i := range int64(1000) { // each of the other keys sends one a second, for 9 seconds
			log.WriteString(strings.Repeat(at(i*1e6, "200"), c.bot))
			if i%10 > 0 {
				log.WriteString(at(i*1e6, fmt.Sprint(i/10)))
			}
		}
		got := sized(t, replay.SizeConfig{Periods: c.periods}, log.String())
		if want := headgate.PerSecond(int64(c.bot)); got.StandOut != nil || got.Proposals[0].Limit != want {
			t.Errorf("%v: %s, %+v, want %s and none", c.periods, got.Proposals[0].Limit, got.StandOut, want)
		}
	}
}
