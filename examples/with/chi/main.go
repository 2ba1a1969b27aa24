// Chi limits the routes of a chi router by client address. An export costs as much as ten other
// requests, and health checks are not limited.
//
//	go run ./examples/with/chi
//	curl -i localhost:8080/export
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func main() {
	h, err := newHandler(netip.MustParsePrefix("127.0.0.0/8")) // the networks of your proxies
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(proxies ...netip.Prefix) (http.Handler, error) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(20))
	if err != nil {
		return nil, err
	}
	address, err := httplimit.ClientAddress(httplimit.AddressOptions{Trusted: proxies})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Key: httplimit.Key(address), Cost: cost})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Get("/health", hello)
	r.Group(func(r chi.Router) {
		r.Use(limit)
		r.Get("/items/{id}", hello)
		r.Get("/export", hello)
	})
	return r, nil
}

// cost reads the pattern of the route. Middleware of a group or of With can read it; middleware
// that Use adds to the whole router cannot.
func cost(r *http.Request) int64 {
	if chi.RouteContext(r.Context()).RoutePattern() == "/export" {
		return 10
	}
	return 1
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }
