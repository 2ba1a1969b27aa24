package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// Without a collector in the environment nothing is sent.
func TestWantsOTel(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "", false},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318", true},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://localhost:4318/v1/metrics", true},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if got := wantsOTel(); got != c.want {
				t.Errorf("%v", got)
			}
			t.Setenv("OTEL_SDK_DISABLED", "true")
			if wantsOTel() {
				t.Error("disabled, and wanted all the same")
			}
		})
	}
}

// Decisions reach the collector, at the latest when the server ends.
func TestOTel(t *testing.T) {
	received := make(chan *collector.ExportMetricsServiceRequest, 10)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message := new(collector.ExportMetricsServiceRequest)
		if err := proto.Unmarshal(body, message); err != nil {
			t.Error(err)
		}
		received <- message
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer sink.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	s, err := newServer(Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	limit := headgate.PerHour(1).Named("login")
	if _, err := s.native.Take(context.Background(), headgate.Request{Key: "k", Limit: limit, Cost: 1}); err != nil {
		t.Fatal(err)
	}
	s.close()
	found := false
	for message := range drained(received) {
		for _, r := range message.GetResourceMetrics() {
			for _, scope := range r.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					for _, p := range m.GetSum().GetDataPoints() {
						found = found || m.GetName() == "headgate.decisions" && p.GetAsInt() == 1
					}
				}
			}
		}
	}
	if !found {
		t.Error("the collector did not get headgate.decisions")
	}
}

// drained returns the messages that are there.
func drained[T any](c chan T) <-chan T {
	close(c)
	return c
}
