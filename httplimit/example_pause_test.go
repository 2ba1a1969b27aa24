package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
)

// GitHub answers 403 when no request of the hour remains, and says in X-RateLimit-Reset when the
// next hour begins. The Transport pauses until then.
func ExampleTransportOptions_github() {
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reset := time.Now().Add(20 * time.Minute)
		w.Header().Set("X-Ratelimit-Remaining", "0")
		w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		w.WriteHeader(http.StatusForbidden)
	}))

	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(5000).Burst(100))
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httplimit.NewTransport(limiter, httplimit.TransportOptions{
		Pause: func(r *http.Response) time.Duration {
			refused := r.StatusCode == http.StatusForbidden ||
				r.StatusCode == http.StatusTooManyRequests
			reset, err := strconv.ParseInt(r.Header.Get("X-Ratelimit-Reset"), 10, 64)
			if err != nil || !refused || r.Header.Get("X-Ratelimit-Remaining") != "0" {
				return 0 // the standard fields decide, such as the Retry-After of a secondary limit
			}
			return time.Until(time.Unix(reset, 0)) + time.Second
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	for range 2 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, github.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		response, err := client.Do(r)
		if late, ok := errors.AsType[*headgate.DeadlineError](err); ok {
			fmt.Println("not sent: the next start time is in", late.Wait.Round(time.Minute))
		} else if err != nil {
			log.Fatal(err)
		} else {
			_ = response.Body.Close()
			fmt.Println(response.Status)
		}
	}
	github.Close()
	// Output:
	// 403 Forbidden
	// not sent: the next start time is in 20m0s
}

func TestDocumentWaiting(t *testing.T) {
	snippets.Check(t, "../docs/waiting.md", "github", "example_pause_test.go")
}
