package otellimit

import (
	"context"
	"errors"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limitmap"
	"github.com/headgate/headgate/observe"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Sets of attributes are made once, because making one takes longer than a decision in memory.

// other is the name of what has no series of its own. No limit can have that name.
const other = "_OTHER"

// limits finds the series of each limit.
type limits struct {
	byName *limitmap.Map[string, *series]
	rest   *series
}

func newLimits(limit int, own []attribute.KeyValue) limits {
	create := func(name string) *series { return newSeries(name, own) }
	return limits{byName: limitmap.New(limit, create), rest: newSeries(other, own)}
}

func (l *limits) of(limit headgate.Limit) *series {
	if limit.ID() == "" { // not valid, so its name may be any text
		return l.rest
	}
	if s, ok := l.byName.Get(limit.Name()); ok {
		return s
	}
	return l.rest
}

// series are the options of one limit, by outcome and by whether the decision was degraded.
type series [observe.Outcomes][2][]metric.AddOption

func newSeries(name string, own []attribute.KeyValue) *series {
	s := new(series)
	for outcome := range s {
		for i, degraded := range []bool{false, true} {
			s[outcome][i] = []metric.AddOption{with(own,
				attribute.String("headgate.limit", name),
				attribute.String("headgate.outcome", observe.Outcome(outcome).String()),
				attribute.Bool("headgate.degraded", degraded))}
		}
	}
	return s
}

func (s *series) options(outcome observe.Outcome, degraded bool) []metric.AddOption {
	if int(outcome) >= observe.Outcomes {
		outcome = 0
	}
	if degraded {
		return s[outcome][1]
	}
	return s[outcome][0]
}

// byError are the options for each type of error.
type byError struct{ none, timeout, canceled, invalid, other []metric.RecordOption }

func newByError(own []attribute.KeyValue, attributes ...attribute.KeyValue) byError {
	typed := func(name string) []metric.RecordOption {
		all := append(slices.Clip(attributes), attribute.String("error.type", name))
		return []metric.RecordOption{with(own, all...)}
	}
	return byError{
		none:     []metric.RecordOption{with(own, attributes...)},
		timeout:  typed("timeout"),
		canceled: typed("canceled"),
		invalid:  typed("invalid"),
		other:    typed(other),
	}
}

func (b *byError) of(err error) []metric.RecordOption {
	if err == nil {
		return b.none
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return b.timeout
	}
	if errors.Is(err, context.Canceled) {
		return b.canceled
	}
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return b.invalid
	}
	return b.other
}

// with returns the option of attributes and own. Own ones take precedence.
func with(own []attribute.KeyValue, attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(slices.Concat(attributes, own)...) // of one key, the last counts
}
