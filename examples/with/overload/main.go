// Overload limits each client by a rate, and the process by an adaptive limit of failsafe-go.
//
//	go run ./examples/with/overload
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func main() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	process := adaptivelimiter.NewWithDefaults[any]()
	h, err := newHandler(limiter, process, http.HandlerFunc(hello))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(
	limiter *headgate.Limiter, process adaptivelimiter.AdaptiveLimiter[any], next http.Handler,
) (http.Handler, error) {
	limit, err := httplimit.New(limiter, httplimit.Options{
		Count: func(status int) bool { return status != http.StatusServiceUnavailable },
	})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		permit, ok := process.TryAcquirePermit()
		if !ok {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		defer permit.Record()
		next.ServeHTTP(w, r)
	})), nil
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
