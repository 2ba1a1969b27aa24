// Slog logs denials and errors of the store, at most one line a second for each key.
//
//	go run ./examples/with/slog
//	for i in $(seq 20); do curl -s localhost:8080; done
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/observe"
)

func main() {
	h, err := newHandler(headgate.NewMemory(), slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(store headgate.Store, logger *slog.Logger) (http.Handler, error) {
	lines, err := headgate.NewLimiter(headgate.NewMemorySize(10_000), headgate.PerSecond(1))
	if err != nil {
		return nil, err
	}
	store, err = observe.New(store, observe.Observer{Decided: func(
		ctx context.Context, e observe.Event,
	) {
		if e.Outcome != observe.Denied && e.Outcome != observe.Failed {
			return
		}
		if line, err := lines.Allow(ctx, e.Request.Key); err == nil && !line.Allowed() {
			return
		}
		logger.WarnContext(ctx, "not allowed", "outcome", e.Outcome.String(), "key", e.Request.Key,
			"limit", e.Request.Limit.Name(), "retry", e.Decision.RetryAfter, "error", e.Err)
	}})
	if err != nil {
		return nil, err
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerSecond(10))
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
