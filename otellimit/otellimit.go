// Package otellimit measures a headgate.Store with OpenTelemetry.
//
//	meter := otel.Meter("github.com/headgate/headgate/otellimit")
//	metrics, err := otellimit.New(meter, otellimit.Options{})
//	...
//	observer := observe.Observer{Decided: metrics.Decided, Called: metrics.Called}
//	store, err = observe.New(store, observer)
//
// The instruments and their attributes:
//
//	headgate.decisions       counter, {decision}   headgate.limit, .outcome, .degraded
//	headgate.store.duration  histogram, s          headgate.method, error.type
//	headgate.batch.size      histogram, {request}
//	headgate.batch.duration  histogram, s          error.type
//	headgate.degraded.time   observable counter, s
//
// headgate.limit is the name of a limit and never a key: clients choose keys, and each key would be
// a series that is kept as long as the process runs. The number of names is bounded, too (see
// [Options]). For the keys that are denied most, use observe.TopDenied.
//
// headgate.outcome is the String of an observe.Outcome. headgate.degraded is true if the decision
// is degraded (headgate.Decision.Degraded), or after Metrics.Degraded(true). error.type is present
// if there was an error: timeout, canceled, invalid (a headgate.InvalidError) or _OTHER.
//
// The package needs only the API of OpenTelemetry. The program's MeterProvider exports the numbers.
package otellimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Options are the settings of [Metrics].
type Options struct {
	// Limits is the number of limit names that have their own series: the first names that are
	// measured. All others count as the limit _OTHER. 0 means [DefaultLimits]; at most 10,000. Each
	// name may take 16 attribute sets, and an SDK keeps 2,000 sets for an instrument by default.
	Limits int

	// Attributes are added to all measurements, for example the name of the store. They replace the
	// attributes of this package that have the same keys.
	Attributes []attribute.KeyValue
}

// DefaultLimits is the default of [Options].Limits.
const DefaultLimits = 100

const maxLimits = 10_000

// Metrics are the instruments of one store. They are safe for use by many goroutines. The methods
// allocate only for the first decision under a name, and do nothing while nothing reads the
// instrument.
type Metrics struct {
	decisions metric.Int64Counter
	calls     metric.Float64Histogram
	sizes     metric.Int64Histogram
	batches   metric.Float64Histogram

	limits      limits
	callOptions map[string]*byError // by method
	batchErrors byError
	sizeOptions []metric.RecordOption

	degraded atomic.Bool
	time     degradedTime
}

// durations are buckets from a fraction of a microsecond, in memory, to seconds across a network.
var durations = metric.WithExplicitBucketBoundaries(1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3,
	2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

var sizes = metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

// New makes the instruments. It returns a headgate.InvalidError if meter is nil or Limits is out of
// range, and any error of meter.
func New(meter metric.Meter, o Options) (*Metrics, error) {
	if err := o.validate(meter); err != nil {
		return nil, err
	}
	if o.Limits == 0 {
		o.Limits = DefaultLimits
	}
	own := slices.Clone(o.Attributes)
	m := &Metrics{
		limits:      newLimits(o.Limits, own),
		callOptions: map[string]*byError{},
		batchErrors: newByError(own),
		sizeOptions: []metric.RecordOption{with(own)},
	}
	for _, method := range []string{"Take", "TakeAll", "Reset"} {
		options := newByError(own, attribute.String("headgate.method", method))
		m.callOptions[method] = &options
	}
	if err := m.instruments(meter, with(own)); err != nil {
		return nil, err
	}
	return m, nil
}

func (o *Options) validate(meter metric.Meter) error {
	if meter == nil {
		return &headgate.InvalidError{
			Field: "meter", Value: "nil", Want: "a Meter, such as otel.Meter(\"...\")",
		}
	}
	if o.Limits < 0 || o.Limits > maxLimits {
		return &headgate.InvalidError{
			Field: "Limits", Value: strconv.Itoa(o.Limits),
			Want: fmt.Sprintf("0 for %d, or 1 to %d", DefaultLimits, maxLimits),
		}
	}
	return nil
}

func (m *Metrics) instruments(meter metric.Meter, own metric.MeasurementOption) error {
	var errs [5]error
	m.decisions, errs[0] = meter.Int64Counter("headgate.decisions",
		metric.WithUnit("{decision}"),
		metric.WithDescription("Requests to a store, by limit and outcome."))
	m.calls, errs[1] = meter.Float64Histogram("headgate.store.duration",
		metric.WithUnit("s"), durations,
		metric.WithDescription("How long the store took to answer a call."))
	m.sizes, errs[2] = meter.Int64Histogram("headgate.batch.size",
		metric.WithUnit("{request}"), sizes,
		metric.WithDescription("Requests sent to the store together."))
	m.batches, errs[3] = meter.Float64Histogram("headgate.batch.duration",
		metric.WithUnit("s"), durations,
		metric.WithDescription("How long a batch of requests took."))
	_, errs[4] = meter.Float64ObservableCounter("headgate.degraded.time",
		metric.WithUnit("s"),
		metric.WithDescription("How long decisions have been made without the store."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(m.time.total().Seconds(), own)
			return nil
		}))
	return errors.Join(errs[:]...)
}

// Decided counts a decision. It is for observe.Observer.
func (m *Metrics) Decided(ctx context.Context, e observe.Event) {
	if !m.decisions.Enabled(ctx) {
		return
	}
	degraded := e.Decision.Degraded() || m.degraded.Load()
	m.decisions.Add(ctx, 1, m.limits.of(e.Request.Limit).options(e.Outcome, degraded)...)
}

// Called records how long a call of the store took. It is for observe.Observer.
func (m *Metrics) Called(ctx context.Context, c observe.Call) {
	if options := m.callOptions[c.Method]; options != nil && m.calls.Enabled(ctx) {
		m.calls.Record(ctx, c.Took.Seconds(), options.of(c.Err)...)
	}
}

// Batch records the size of a batch, how long it took, and its error.
func (m *Metrics) Batch(requests int, took time.Duration, err error) {
	ctx := context.Background()
	if m.sizes.Enabled(ctx) {
		m.sizes.Record(ctx, int64(requests), m.sizeOptions...)
	}
	if m.batches.Enabled(ctx) {
		m.batches.Record(ctx, took.Seconds(), m.batchErrors.of(err)...)
	}
}

// Degraded sets whether decisions are made without the store from now on. Such decisions are
// marked, and the time is counted. Setting the same value again changes nothing.
func (m *Metrics) Degraded(degraded bool) {
	m.time.set(degraded)
	m.degraded.Store(degraded)
}
