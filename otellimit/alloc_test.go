//go:build !race

// Under the race detector, the SDK's pools drop items at random.

package otellimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
	"github.com/headgate/headgate/otellimit"
	"go.opentelemetry.io/otel/metric/noop"
)

// Neither Metrics nor the SDK that it calls allocates.
func TestMetricsDoNotAllocate(t *testing.T) {
	m := measure(t, otellimit.Options{})
	s, ctx := m.observe(t, headgate.NewMemory()), t.Context()
	l := headgate.FixedWindow(5, time.Hour).Named("api")
	broken := errors.New("broken")
	for what, do := range map[string]func(){
		"a decision": func() { _, _ = s.Take(ctx, headgate.Request{Limit: l, Cost: 1}) },
		"a batch":    func() { m.Batch(3, time.Millisecond, nil); m.Batch(3, time.Millisecond, broken) },
		"degraded":   func() { m.Degraded(true); m.Degraded(false) },
	} {
		for range 100 {
			do()
		}
		if n := testing.AllocsPerRun(1000, do); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

func BenchmarkMetrics(b *testing.B) {
	off, err := otellimit.New(noop.NewMeterProvider().Meter(""), otellimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	memory, on := headgate.NewMemory(), measure(b, otellimit.Options{})
	for _, c := range []struct {
		name     string
		observer observe.Observer
	}{
		{"none", observe.Observer{}},
		{"noop", observe.Observer{Decided: off.Decided, Called: off.Called}},
		{"decided", observe.Observer{Decided: on.Decided}},
		{"both", observe.Observer{Decided: on.Decided, Called: on.Called}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := observe.New(memory, c.observer)
			if err != nil {
				b.Fatal(err)
			}
			l := headgate.Per(1e6, time.Millisecond).Named("api")
			r := headgate.Request{Key: "user:1234567", Limit: l, Cost: 1}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Take(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
