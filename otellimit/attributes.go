package otellimit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Sets of attributes are made once: to make one takes longer than a decision in memory.

// other stands for what is not told apart. No limit can have that name.
const other = "_OTHER"

// outcomes is one more than the last outcome.
const outcomes = int(headgate.OutcomeFailed) + 1

// limits finds the series of each limit.
type limits struct {
	known atomic.Pointer[map[string]*series] // never changed, but replaced
	rest  *series

	mu   sync.Mutex // for who replaces known
	most int
	own  []attribute.KeyValue
}

func (l *limits) start(most int, own []attribute.KeyValue) {
	l.most, l.own = most, slices.Clone(own)
	l.rest = newSeries(other, own)
	l.known.Store(&map[string]*series{})
}

func (l *limits) of(limit headgate.Limit) *series {
	if limit.ID() == "" { // not valid: its name is whatever somebody wrote
		return l.rest
	}
	name := limit.Name()
	known := *l.known.Load()
	if s := known[name]; s != nil {
		return s
	}
	if len(known) >= l.most {
		return l.rest
	}
	return l.add(name)
}

func (l *limits) add(name string) *series {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := *l.known.Load()
	if s := known[name]; s != nil {
		return s
	}
	if len(known) >= l.most {
		return l.rest
	}
	more, s := maps.Clone(known), newSeries(name, l.own)
	more[name] = s
	l.known.Store(&more)
	return s
}

// series are the options of one limit, by outcome and by whether it was degraded.
type series [outcomes][2][]metric.AddOption

func newSeries(name string, own []attribute.KeyValue) *series {
	s := new(series)
	for outcome := range s {
		for i, degraded := range []bool{false, true} {
			s[outcome][i] = []metric.AddOption{with(own,
				attribute.String("headgate.limit", name),
				attribute.String("headgate.outcome", headgate.Outcome(outcome).String()),
				attribute.Bool("headgate.degraded", degraded))}
		}
	}
	return s
}

func (s *series) options(outcome headgate.Outcome, degraded bool) []metric.AddOption {
	if int(outcome) >= outcomes {
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
		return []metric.RecordOption{with(own, append(slices.Clip(attributes), attribute.String("error.type", name))...)}
	}
	return byError{
		none:    []metric.RecordOption{with(own, attributes...)},
		timeout: typed("timeout"), canceled: typed("canceled"), invalid: typed("invalid"), other: typed(other),
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

// with is the option of attributes and own, of which own go before.
func with(own []attribute.KeyValue, attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(slices.Concat(attributes, own)...) // of one key, the last counts
}
