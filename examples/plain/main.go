// Plain limits each client address to 10 requests a second, in bursts of up to 20.
//
//	go run ./examples/plain
//	curl -i localhost:8080
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
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(10).Burst(20))
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(hello)), nil
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
