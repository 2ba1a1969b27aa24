// Redis shares the limit of each client address among all servers that use the same Redis.
// While Redis does not answer within 50 ms, requests pass, which is logged once a second.
//
//	go run ./examples/redis -store redis://localhost:6379
//	curl -i localhost:8080
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/redisstore"
)

func main() {
	url := flag.String("store", "redis://localhost:6379", "the Redis to share")
	flag.Parse()
	h, err := newHandler(*url)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(url string) (http.Handler, error) {
	store, err := redisstore.Open(url)
	if err != nil {
		return nil, err
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerSecond(10).Burst(20))
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{
		Timeout: 50 * time.Millisecond,
		Observe: func(_ *http.Request, _ headgate.Decision, err error) {
			if err != nil {
				logSometimes("passing without a limit: ", err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(hello)), nil
}

// lastLog is the Unix time of the last line, so that a flood of requests does not fill the
// disk while Redis is unavailable.
var lastLog atomic.Int64

func logSometimes(a ...any) {
	now := time.Now().Unix()
	if last := lastLog.Load(); last != now && lastLog.CompareAndSwap(last, now) {
		log.Print(a...)
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
