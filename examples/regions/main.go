// Regions is a server in a region that is 150 ms away from the Redis of the home region, which all
// regions share. Six processes in all regions together allow each client 3,000 requests a minute.
// While the home cannot be reached, each process allows its share of them.
//
//	go run ./examples/regions -home "redis://localhost:6379?dial_timeout=1s&read_timeout=1s"
//	curl -i localhost:8080
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
)

func main() {
	url := flag.String("home", "redis://localhost:6379?dial_timeout=1s&read_timeout=1s", "`URL`")
	flag.Parse()
	home, err := redisstore.Open(*url)
	if err != nil {
		log.Fatal(err)
	}
	fleet, err := redisstore.NewFleet(home, redisstore.FleetOptions{MinInstances: 6})
	if err != nil {
		log.Fatal(err)
	}
	store, err := newStore(home, fleet.Instances)
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerMinute(3000))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	h := limit(http.HandlerFunc(hello))
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newStore returns a store of a process that is 150 ms away from home.
func newStore(home headgate.Store, instances func() int) (headgate.Store, error) {
	safe, err := fallback.New(home, fallback.Options{
		Mode: fallback.Local, Instances: instances, Timeout: time.Second,
	})
	if err != nil {
		return nil, err
	}
	denials, err := denycache.New(safe, 0)
	if err != nil {
		return nil, err
	}
	return lease.New(denials, lease.Options{PrefetchFraction: 0.1, TTL: 10 * time.Second})
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
