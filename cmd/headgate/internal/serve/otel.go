package serve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/observe"
	"github.com/headgate/headgate/otellimit"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// otelTimeout bounds the last transfer at the end.
const otelTimeout = 2 * time.Second

// wantsOTel reports whether the environment names a collector of OpenTelemetry.
func wantsOTel() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") ||
		os.Getenv("OTEL_METRICS_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != ""
}

// openOTel sends the metrics of otellimit to the collector that the OTEL_ variables name. The
// observer is for the stores.
func (s *server) openOTel() (observe.Observer, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		s.log.Warn("opentelemetry: metrics were not sent", "error", err)
	}))
	ctx := context.Background()
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return observe.Observer{}, fmt.Errorf("opentelemetry: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "headgate"),
		attribute.String("service.version", s.o.Version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv()) // which names it otherwise
	if err != nil {
		return observe.Observer{}, fmt.Errorf("opentelemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := metric.NewMeterProvider(
		metric.WithReader(metric.NewPeriodicReader(exporter)), metric.WithResource(about))
	s.stores.closers = append(s.stores.closers, closerFunc(func() error {
		ctx, cancel := context.WithTimeout(ctx, otelTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil { // sends what is left
			otel.Handle(err)
		}
		return nil
	}))
	meter := provider.Meter("github.com/headgate/headgate/cmd/headgate/internal/serve")
	m, err := otellimit.New(meter, otellimit.Options{})
	if err != nil {
		return observe.Observer{}, err
	}
	return observe.Observer{Decided: m.Decided, Called: m.Called}, nil
}

// closerFunc is a function that closes something.
type closerFunc func() error

// Close implements io.Closer.
func (f closerFunc) Close() error { return f() }
