package httplimit_test

import (
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
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer github.Close()

	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(5000).Burst(100))
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httplimit.NewTransport(limiter, httplimit.TransportOptions{
		Pause: func(r *http.Response) time.Duration {
			refused := r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusTooManyRequests
			reset, err := strconv.ParseInt(r.Header.Get("X-RateLimit-Reset"), 10, 64)
			if err != nil || !refused || r.Header.Get("X-RateLimit-Remaining") != "0" {
				return 0 // the standard fields decide, such as the Retry-After of a secondary limit
			}
			return time.Until(time.Unix(reset, 0)) + time.Second
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	response, err := client.Get(github.URL + "/user/repos")
	if err != nil {
		log.Fatal(err)
	}
	_ = response.Body.Close()

	fmt.Println(response.Status)

	hurried := http.Client{Transport: transport, Timeout: time.Second}
	_, err = hurried.Get(github.URL + "/user/repos")
	if d, ok := errors.AsType[*headgate.DeadlineError](err); ok {
		fmt.Println("not sent: the next start time is in", d.Wait.Round(time.Minute))
	}
	// Output:
	// 403 Forbidden
	// not sent: the next start time is in 20m0s
}

func TestDocumentWaiting(t *testing.T) {
	snippets.Check(t, "../docs/waiting.md", "github", "example_pause_test.go")
}
