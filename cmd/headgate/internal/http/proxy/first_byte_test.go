package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// BenchmarkFirstByte measures when the first byte of a stream arrives: without a proxy, with one,
// and with a cost of tokens. It reports medians in microseconds, of requests that take turns.
func BenchmarkFirstByte(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "data: "+done+"\n\ndata: [DONE]\n\n")
	}))
	defer app.Close()
	plain := budget(1e15)
	plain.Cost = rules.Cost{}
	urls := []string{app.URL}
	for _, rule := range []rules.Rule{plain, budget(1e15)} {
		server := httptest.NewServer(newEdge(b, headgate.NewMemory(), app.URL, "", rule).handler)
		defer server.Close()
		urls = append(urls, server.URL)
	}
	for name, size := range map[string]int{"1kB": 1 << 10, "100kB": 100 << 10} {
		b.Run(name, func(b *testing.B) {
			body := `{"max_tokens":100,"messages":"` + strings.Repeat("word ", size/5) + `"}`
			took := make([][]time.Duration, len(urls))
			for b.Loop() {
				for i, url := range urls {
					took[i] = append(took[i], untilFirstByte(b, url, body))
				}
			}
			for i, unit := range []string{"direct-us", "proxy-us", "tokens-us"} {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), unit)
			}
		})
	}
}

func untilFirstByte(b *testing.B, url, body string) time.Duration {
	b.Helper()
	start := time.Now()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	_, _ = io.Copy(io.Discard, response.Body)
	return took
}
