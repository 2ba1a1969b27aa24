// Several gives each user two limits, 10 a second and 1000 a day. A write costs five times as
// much as a read. A request that one of them denies is charged by neither.
//
//	go run ./examples/several
//	curl -i -u ada: localhost:8080
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func main() {
	h, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(),
		headgate.PerSecond(10).Named("second"),
		headgate.FixedWindow(1000, 24*time.Hour).Named("day"))
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Key: user, Cost: cost})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(hello)), nil
}

// user returns the name of the user. In a real server, the code that checked the password
// provides it.
func user(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

func cost(r *http.Request) int64 {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return 1
	}
	return 5
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
