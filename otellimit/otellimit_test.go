package otellimit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
	"github.com/headgate/headgate/otellimit"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// measured is a Metrics with the reader of an SDK.
type measured struct {
	*otellimit.Metrics

	reader *sdk.ManualReader
}

func measure(t testing.TB, o otellimit.Options, more ...sdk.Option) *measured {
	t.Helper()
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(append(more, sdk.WithReader(reader))...)
	metrics, err := otellimit.New(provider.Meter("test"), o)
	if err != nil {
		t.Fatal(err)
	}
	return &measured{metrics, reader}
}

func (m *measured) observe(t testing.TB, s headgate.Store) headgate.Store {
	t.Helper()
	s, err := observe.New(s, observe.Observer{Decided: m.Decided, Called: m.Called})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the value of each series, by "name unit attributes". That of a histogram is the
// count and the sum.
func (m *measured) read(t testing.TB) map[string]string {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := m.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	series := map[string]string{}
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Description == "" {
				t.Errorf("%s has no description", metric.Name)
			}
			for set, value := range values(t, metric.Data) {
				series[strings.TrimSpace(metric.Name+" "+metric.Unit+" "+set)] = value
			}
		}
	}
	return series
}

func values(t testing.TB, data metricdata.Aggregation) map[string]string {
	t.Helper()
	found := map[string]string{}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes)] = fmt.Sprint(p.Value)
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes)] = fmt.Sprint(p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes)] = fmt.Sprint(p.Count, " of ", p.Sum)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes)] = fmt.Sprintf("%d of %.6g", p.Count, p.Sum)
		}
	default:
		t.Errorf("unexpected %T", data)
	}
	return found
}

func text(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }

func check(t testing.TB, got, want map[string]string) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if got[series] != want[series] {
			t.Errorf("%s is %q; want %s", series, got[series], want[series])
		}
	}
	for _, series := range slices.Sorted(maps.Keys(got)) {
		if want[series] == "" {
			t.Errorf("%s is %s; want none", series, got[series])
		}
	}
}

func decisions(limit, outcome string, degraded bool) string {
	return fmt.Sprintf("headgate.decisions {decision} "+
		"headgate.degraded=%t,headgate.limit=%s,headgate.outcome=%s", degraded, limit, outcome)
}

// store takes a few milliseconds, and fails if err is set.
type store struct {
	headgate.Store

	err error
}

func (s *store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(2 * time.Millisecond)
	if s.err != nil {
		return headgate.Decision{}, s.err
	}
	return s.Store.Take(ctx, r)
}

func (s *store) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	time.Sleep(3 * time.Millisecond)
	return s.Store.TakeAll(ctx, rs, ds)
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, behind := measure(t, otellimit.Options{}), &store{Store: headgate.NewMemory()}
		s := m.observe(t, behind)
		api, day := headgate.FixedWindow(2, time.Hour).Named("api"), headgate.PerDay(100)
		take := func(r headgate.Request) {
			r.Key = "secret"
			_, _ = s.Take(t.Context(), r)
		}
		take(headgate.Request{Limit: api, Cost: 1})
		take(headgate.Request{Limit: api, Cost: 1})
		take(headgate.Request{Limit: api, Cost: 1})
		take(headgate.Request{Limit: api, Cost: 0})
		take(headgate.Request{Limit: api, Cost: 1, MaxWait: time.Hour})
		take(headgate.Request{Limit: day, Cost: -1})
		m.Degraded(true)
		take(headgate.Request{Limit: api, Cost: 1})
		m.Degraded(false)
		share := headgate.FixedWindow(2, time.Hour).Named("own").Share(2)
		take(headgate.Request{Limit: share, Cost: 1}) // a decision of fallback.Store
		group := []headgate.Request{
			{Key: "secret", Limit: api, Cost: 1}, {Key: "secret", Limit: day, Cost: 1},
		}
		if err := s.TakeAll(t.Context(), group, make([]headgate.Decision, 2)); err != nil {
			t.Error(err)
		}
		if err := s.Reset(t.Context(), "secret", day); err != nil {
			t.Error(err)
		}
		for _, behind.err = range []error{
			errors.New("broken"), fmt.Errorf("in time: %w", context.DeadlineExceeded),
			context.Canceled, &headgate.InvalidError{},
		} {
			take(headgate.Request{Limit: day, Cost: 1})
		}
		take(headgate.Request{Cost: 1}) // an invalid limit is not used as a label
		m.Batch(3, 10*time.Millisecond, nil)
		m.Batch(5, 20*time.Millisecond, nil)
		m.Batch(7, time.Second, context.DeadlineExceeded)

		check(t, m.read(t), map[string]string{
			decisions("api", "allowed", false):                                   "2",
			decisions("api", "denied", false):                                    "2",
			decisions("api", "denied", true):                                     "1",
			decisions("own", "allowed", true):                                    "1",
			decisions("api", "peeked", false):                                    "1",
			decisions("api", "reserved", false):                                  "1",
			decisions("100/d", "refunded", false):                                "1",
			decisions("100/d", "rolled_back", false):                             "1",
			decisions("100/d", "error", false):                                   "4",
			decisions("_OTHER", "error", false):                                  "1",
			"headgate.store.duration s headgate.method=Take":                     "8 of 0.016",
			"headgate.store.duration s headgate.method=TakeAll":                  "1 of 0.003",
			"headgate.store.duration s headgate.method=Reset":                    "1 of 0",
			"headgate.store.duration s error.type=_OTHER,headgate.method=Take":   "1 of 0.002",
			"headgate.store.duration s error.type=timeout,headgate.method=Take":  "1 of 0.002",
			"headgate.store.duration s error.type=canceled,headgate.method=Take": "1 of 0.002",
			"headgate.store.duration s error.type=invalid,headgate.method=Take":  "2 of 0.004",
			"headgate.batch.size {request}":                                      "3 of 15",
			"headgate.batch.duration s":                                          "2 of 0.03",
			"headgate.batch.duration s error.type=timeout":                       "1 of 1",
			"headgate.degraded.time s":                                           "0.002",
		})
	})
}

func TestDegradedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measure(t, otellimit.Options{})
		for _, step := range []struct {
			degraded bool
			lasts    time.Duration
			want     string // seconds at its end
		}{
			{false, time.Minute, "0"},
			{true, time.Second, "1"},
			{true, time.Second, "2"}, // set twice
			{false, time.Hour, "2"},
			{false, time.Hour, "2"},
			{true, 500 * time.Millisecond, "2.5"},
		} {
			m.Degraded(step.degraded)
			time.Sleep(step.lasts)
			if got := m.read(t)["headgate.degraded.time s"]; got != step.want {
				t.Errorf("%t for %s: %s s; want %s", step.degraded, step.lasts, got, step.want)
			}
		}
	})
}

// The number of series is bounded for any number of limits, and every decision is counted.
func TestManyLimits(t *testing.T) {
	for limits, want := range map[int]int{0: otellimit.DefaultLimits + 1, 1: 2, 7: 8} {
		m := measure(t, otellimit.Options{Limits: limits}, sdk.WithCardinalityLimit(0))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range 10_000 {
					l := headgate.FixedWindow(1, time.Minute).Named(fmt.Sprint("tenant-", i))
					r := headgate.Request{Limit: l, Cost: 1}
					m.Decided(t.Context(), observe.Event{Request: r, Outcome: observe.Allowed})
				}
			})
		}
		all.Wait()
		got, sum := m.read(t), 0
		delete(got, "headgate.degraded.time s")
		for _, n := range got {
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Error(err)
			}
			sum += count
		}
		others := got[decisions("_OTHER", "allowed", false)]
		if len(got) != want || sum != 40_000 || others != fmt.Sprint(4*(10_000-want+1)) {
			t.Errorf("%d limits: %d series, %d decisions, %s of others; want %d and 40000",
				limits, len(got), sum, others, want)
		}
	}
}

// By default, an SDK has room for all outcomes of all limits that have series of their own.
func TestDefaultFitsAnSDK(t *testing.T) {
	m := measure(t, otellimit.Options{})
	for i := range 1000 {
		l := headgate.FixedWindow(1, time.Minute).Named(fmt.Sprint("tenant-", i))
		for _, degraded := range []bool{true, false} {
			m.Degraded(degraded)
			for outcome := observe.Allowed; outcome <= observe.Failed; outcome++ {
				m.Decided(t.Context(), observe.Event{Request: headgate.Request{Limit: l}, Outcome: outcome})
			}
		}
	}
	got := m.read(t)
	delete(got, "headgate.degraded.time s")
	for series := range got {
		if !strings.Contains(series, "headgate.limit=") {
			t.Errorf("the SDK has no room: %s", series)
		}
	}
	if want := (otellimit.DefaultLimits + 1) * 2 * (observe.Outcomes - 1); len(got) != want {
		t.Errorf("%d series; want %d", len(got), want)
	}
}

func TestAttributesOfTheStore(t *testing.T) {
	m := measure(t, otellimit.Options{Attributes: []attribute.KeyValue{
		attribute.String("store", "redis"), attribute.String("headgate.method", "any"),
	}})
	r := headgate.Request{Limit: headgate.FixedWindow(1, time.Minute)}
	m.Decided(t.Context(), observe.Event{Request: r, Outcome: 99})
	m.Called(t.Context(), observe.Call{Method: "Take", Took: time.Second})
	m.Called(t.Context(), observe.Call{Method: "unknown", Took: time.Second})
	m.Batch(1, time.Second, errors.New("broken"))
	check(t, m.read(t), map[string]string{
		"headgate.decisions {decision} headgate.degraded=false,headgate.limit=1/m fixed-window," +
			"headgate.method=any,headgate.outcome=none,store=redis": "1",
		"headgate.store.duration s headgate.method=any,store=redis":                   "1 of 1",
		"headgate.batch.size {request} headgate.method=any,store=redis":               "1 of 1",
		"headgate.batch.duration s error.type=_OTHER,headgate.method=any,store=redis": "1 of 1",
		"headgate.degraded.time s headgate.method=any,store=redis":                    "0",
	})
}

// failing is a Meter that cannot make the instrument of a name.
type failing struct {
	metric.Meter

	name string
}

func (f failing) Int64Histogram(
	name string, o ...metric.Int64HistogramOption,
) (metric.Int64Histogram, error) {
	if name == f.name {
		return nil, errors.New("no " + name)
	}
	return f.Meter.Int64Histogram(name, o...)
}

func TestNewRefuses(t *testing.T) {
	meter := noop.NewMeterProvider().Meter("")
	for _, c := range []struct {
		meter metric.Meter
		o     otellimit.Options
		want  string
	}{
		{nil, otellimit.Options{}, `headgate: meter is nil; want a Meter, such as otel.Meter("...")`},
		{meter, otellimit.Options{Limits: -1}, "headgate: Limits is -1; want 0 for 100, or 1 to 10000"},
		{
			meter, otellimit.Options{Limits: 10_001},
			"headgate: Limits is 10001; want 0 for 100, or 1 to 10000",
		},
		{failing{meter, "headgate.batch.size"}, otellimit.Options{}, "no headgate.batch.size"},
	} {
		m, err := otellimit.New(c.meter, c.o)
		if err == nil || err.Error() != c.want || m != nil {
			t.Errorf("%+v: %v, %v; want %s", c.o, m, err, c.want)
		}
	}
}

// off is a Meter that nothing reads. It counts the measurements that it gets all the same.
type off struct {
	noop.Meter

	measured *int
}

type offCounter struct {
	noop.Int64Counter

	measured *int
}

func (c offCounter) Add(context.Context, int64, ...metric.AddOption) { *c.measured++ }

type offHistogram struct {
	noop.Float64Histogram

	measured *int
}

func (h offHistogram) Record(context.Context, float64, ...metric.RecordOption) { *h.measured++ }

func (o off) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return offCounter{measured: o.measured}, nil
}

func (o off) Float64Histogram(
	string, ...metric.Float64HistogramOption,
) (metric.Float64Histogram, error) {
	return offHistogram{measured: o.measured}, nil
}

func TestOff(t *testing.T) {
	measured := 0
	m, err := otellimit.New(off{measured: &measured}, otellimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Degraded(true)
	m.Batch(1, time.Second, nil)
	m.Called(t.Context(), observe.Call{Method: "Take"})
	m.Decided(t.Context(), observe.Event{})
	if measured != 0 {
		t.Errorf("%d measurements that nothing reads", measured)
	}
}

// A program that imports this package links the API of OpenTelemetry, and no SDK.
func TestNoSDK(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.Lines(string(out)) {
		if strings.Contains(path, "/sdk") || strings.Contains(path, "redis") {
			t.Errorf("links %s", path)
		}
	}
	if !strings.Contains(string(out), "go.opentelemetry.io/otel/metric\n") {
		t.Errorf("go list: %s", out)
	}
}
