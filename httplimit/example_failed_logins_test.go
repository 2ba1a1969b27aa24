package httplimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Only failed logins count: 3 an hour for each address. A login that succeeds is not charged.
func ExampleOptions_failedLogins() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(3))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{
		Count: func(status int) bool { return status == http.StatusUnauthorized },
	})
	if err != nil {
		log.Fatal(err)
	}
	login := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"secret", "1", "secret", "2", "secret", "3", "secret"} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/login", nil)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		login.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("X-Ratelimit-Remaining"))
	}
	// Output:
	// 200 2
	// 401 2
	// 200 1
	// 401 1
	// 200 0
	// 401 0
	// 429 0
}
