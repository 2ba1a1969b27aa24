// Plans limits each API key by what its owner pays for, and requests without a key by their
// address. Both plans have the same name, so a customer that upgrades keeps what was used and has
// the new limit at once.
//
//	go run ./examples/plans
//	curl -i -H 'X-Api-Key: ada' localhost:8080
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// The limits of each plan. They are made once, because making a limit costs more than a decision.
var (
	free = []headgate.Limit{headgate.PerMinute(60).Burst(5).Named("api")}
	pro  = []headgate.Limit{headgate.PerMinute(600).Burst(50).Named("api")}
)

// customers stands for your database: the plan of each API key.
var customers = map[string][]headgate.Limit{"ada": pro, "bob": free}

func main() {
	h, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	limiter, err := headgate.NewLimiterFunc(headgate.NewMemory(), planOf)
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Key: keyOf})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(hello)), nil
}

// planOf returns the limits of an API key or an address.
func planOf(_ context.Context, key string) ([]headgate.Limit, error) {
	if plan, ok := customers[key]; ok {
		return plan, nil
	}
	return free, nil
}

var address = httplimit.Key(httplimit.RemoteAddress)

// keyOf returns the API key of a customer, or else the address of the client: an invented API key
// gets no fresh budget.
func keyOf(r *http.Request) string {
	key := r.Header.Get("X-Api-Key")
	if _, ok := customers[key]; ok {
		return key
	}
	return address(r)
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
