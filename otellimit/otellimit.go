// Package otellimit measures a headgate.Store with OpenTelemetry. It needs the API of
// OpenTelemetry only; what becomes of the numbers is for the program's MeterProvider.
//
//	metrics, err := otellimit.New(otel.Meter("github.com/headgate/headgate/otellimit"), otellimit.Options{})
//	...
//	store, err = headgate.Observe(store, headgate.Observer{Decided: metrics.Decided, Called: metrics.Called})
//
// The instruments and their attributes:
//
//	headgate.decisions       counter, {decision}        headgate.limit, headgate.outcome, headgate.degraded
//	headgate.store.duration  histogram, s               headgate.method, error.type
//	headgate.batch.size      histogram, {request}
//	headgate.batch.duration  histogram, s               error.type
//	headgate.degraded.time   observable counter, s
//
// headgate.limit is the name of a limit, never a key: strangers choose keys, and each would be a
// series that lives as long as the process. Names are bounded too, see [Options]. Who wants the
// names of those who are denied has headgate.TopDenied.
//
// headgate.outcome is the String of a headgate.Outcome; denied by all decisions that asked for
// tokens is the share that is refused. headgate.degraded says whether the decision does
// (headgate.Decision.Degraded), or [Metrics.Degraded] did last.
// error.type is there if there was an error, and one of timeout, canceled, invalid (a headgate.InvalidError) and _OTHER.
package otellimit

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Options are what may be said about [Metrics].
type Options struct {
	// Limits is for how many different names of limits there are series of their own: those that come
	// first. All others count as the limit _OTHER. 0 means [DefaultLimits]; at most 10,000. Each may take 14
	// of the attribute sets for which an SDK has room, by default 2000 for an instrument.
	Limits int

	// Attributes are added to all measurements. Where a process has several stores, they say which is
	// meant. They take precedence over those of the same keys above.
	Attributes []attribute.KeyValue
}

// DefaultLimits is the number of names that have series of their own, unless Options say otherwise.
const DefaultLimits = 100

const mostLimits = 10_000

// Metrics are the instruments of one store. Its methods may be called by many goroutines; none allocates,
// but for the first decision under a name. They do nothing if no one reads the instrument.
type Metrics struct {
	decisions metric.Int64Counter
	calls     metric.Float64Histogram
	sizes     metric.Int64Histogram
	batches   metric.Float64Histogram

	limits      limits
	callOptions map[string]*byError // by the method
	batchErrors byError
	sizeOptions []metric.RecordOption

	degraded atomic.Bool
	time     degradedTime
}

// durations are buckets for what takes a fraction of a microsecond in memory, and up to seconds
// across a network.
var durations = metric.WithExplicitBucketBoundaries(1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

var sizes = metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

// New makes the instruments by meter. It returns a headgate.InvalidError if meter is nil or Limits is out of
// bounds, and what meter returns.
func New(meter metric.Meter, o Options) (*Metrics, error) {
	if meter == nil {
		return nil, &headgate.InvalidError{Field: "meter", Value: "nil", Want: "a Meter, such as otel.Meter(\"...\")"}
	}
	if o.Limits < 0 || o.Limits > mostLimits {
		return nil, &headgate.InvalidError{Field: "limits", Value: strconv.Itoa(o.Limits), Want: "0 for " + strconv.Itoa(DefaultLimits) + ", or 1 to " + strconv.Itoa(mostLimits)}
	}
	if o.Limits == 0 {
		o.Limits = DefaultLimits
	}
	m := &Metrics{batchErrors: newByError(o.Attributes), sizeOptions: []metric.RecordOption{with(o.Attributes)}, callOptions: map[string]*byError{}}
	m.limits.start(o.Limits, o.Attributes)
	for _, method := range []string{"Take", "TakeAll", "Reset"} {
		options := newByError(o.Attributes, attribute.String("headgate.method", method))
		m.callOptions[method] = &options
	}
	if err := m.instruments(meter, with(o.Attributes)); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Metrics) instruments(meter metric.Meter, own metric.MeasurementOption) error {
	var errs [5]error
	m.decisions, errs[0] = meter.Int64Counter("headgate.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Requests that a store was asked to decide, by limit and outcome."))
	m.calls, errs[1] = meter.Float64Histogram("headgate.store.duration", metric.WithUnit("s"), durations,
		metric.WithDescription("How long the store took to answer a call."))
	m.sizes, errs[2] = meter.Int64Histogram("headgate.batch.size", metric.WithUnit("{request}"), sizes,
		metric.WithDescription("Requests sent to the store together."))
	m.batches, errs[3] = meter.Float64Histogram("headgate.batch.duration", metric.WithUnit("s"), durations,
		metric.WithDescription("How long a batch of requests took."))
	_, errs[4] = meter.Float64ObservableCounter("headgate.degraded.time", metric.WithUnit("s"),
		metric.WithDescription("How long decisions have been made without the store they belong to."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(m.time.total().Seconds(), own)
			return nil
		}))
	return errors.Join(errs[:]...)
}

// Decided counts a decision. It is for headgate.Observer.
func (m *Metrics) Decided(ctx context.Context, o headgate.Observed) {
	if m.decisions.Enabled(ctx) {
		m.decisions.Add(ctx, 1, m.limits.of(o.Request.Limit).options(o.Outcome, o.Decision.Degraded() || m.degraded.Load())...)
	}
}

// Called records how long the store took. It is for headgate.Observer.
func (m *Metrics) Called(ctx context.Context, c headgate.Call) {
	if options := m.callOptions[c.Method]; options != nil && m.calls.Enabled(ctx) {
		m.calls.Record(ctx, c.Took.Seconds(), options.of(c.Err)...)
	}
}

// Batch records that so many requests were sent together, how long that took and with what result.
func (m *Metrics) Batch(requests int, took time.Duration, err error) {
	ctx := context.Background()
	if m.sizes.Enabled(ctx) {
		m.sizes.Record(ctx, int64(requests), m.sizeOptions...)
	}
	if m.batches.Enabled(ctx) {
		m.batches.Record(ctx, took.Seconds(), m.batchErrors.of(err)...)
	}
}

// Degraded says whether, from now on, decisions are made without the store they belong to. The
// time that they are is counted, and they are marked. To say the same twice changes nothing.
func (m *Metrics) Degraded(degraded bool) {
	m.time.set(degraded)
	m.degraded.Store(degraded)
}
