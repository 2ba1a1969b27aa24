package httplimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/httplimit"
)

// BenchmarkFirstByte measures when the first byte of a stream arrives: without a Transport, with
// one, and with Tokens. It reports medians in microseconds, of requests that take turns.
func BenchmarkFirstByte(b *testing.B) {
	for name, size := range map[string]int{"1kB": 1 << 10, "100kB": 100 << 10} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(http.HandlerFunc(firstByte))
			defer server.Close()
			clients := []*http.Client{{}}
			for _, tokens := range []*httplimit.TokenCost{nil, {Estimate: 200, Input: 1, Output: 4}} {
				transport, err := httplimit.NewTransport(newLimiter(b, "1000000000/s"),
					httplimit.TransportOptions{Tokens: tokens})
				if err != nil {
					b.Fatal(err)
				}
				clients = append(clients, &http.Client{Transport: transport})
			}
			body := `{"max_tokens":100,"messages":"` + strings.Repeat("word ", size/5) + `"}`
			took := make([][]time.Duration, len(clients))
			for b.Loop() {
				for i, client := range clients {
					took[i] = append(took[i], untilFirstByte(b, client, server.URL, body))
				}
			}
			for i, unit := range []string{"direct-us", "transport-us", "tokens-us"} {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), unit)
			}
		})
	}
}

// firstByte answers with a stream.
func firstByte(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {}\n\n")
	_ = http.NewResponseController(w).Flush()
	_, _ = io.WriteString(w, "data: "+used+"\n\ndata: [DONE]\n\n")
}

func untilFirstByte(b *testing.B, client *http.Client, url, body string) time.Duration {
	b.Helper()
	start := time.Now()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	response, err := client.Do(r)
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
