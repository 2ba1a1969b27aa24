// Package demo serves a page that shows limits at work: two lanes side by side, each with its own
// limit, decide the same traffic.
//
//	page, err := demo.New(headgate.NewMemory(), demo.Options{})
//	...
//	err = page.Serve(ctx, listener)
//
// The browser counts nothing itself. It sends batches of requests, and the server decides each
// request separately, in both lanes, as it would decide the requests of clients. GET /api/state has
// all that the page shows: the limits, the counts and the last seconds.
package demo

import (
	"context"
	"embed"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/charts"
)

//go:embed page
var files embed.FS

// Options configures [New]. The zero value is valid.
type Options struct {
	// Store is the name of the store on the page. Default: "memory".
	Store string

	// Host is the host on which the page is served. If it is not an address of the loopback
	// interface, the page also accepts requests for this name, for the name of the machine
	// and for any IP address. Default: loopback only.
	Host string

	// Now returns the time of the store, whose clock decides where windows have their edges.
	// Default: the clock of this process.
	Now func(ctx context.Context) (time.Time, error)
}

// Demo serves the page and its API. It is safe for concurrent use. Make one with [New].
type Demo struct {
	handler http.Handler
	options Options
	store   headgate.Store
	lanes   [2]*lane // left and right
	clock   storeClock
	batches chan struct{} // one for each batch that is being decided
}

// The initial limits of the lanes. The left one has the numbers of the demo in the Redis
// documentation; the right one allows as many requests in the long run.
var (
	firstLeft  = headgate.PerSecond(1).Burst(10)
	firstRight = headgate.FixedWindow(10, 10*time.Second)
)

// New makes a Demo whose limits are kept in store.
func New(store headgate.Store, options Options) (*Demo, error) {
	if options.Store == "" {
		options.Store = "memory"
	}
	d := &Demo{options: options, store: store, clock: storeClock{now: options.Now},
		batches: make(chan struct{}, maxBatches)}
	for i, limit := range []headgate.Limit{firstLeft, firstRight} {
		l, err := newLane(store, laneNames[i], limit)
		if err != nil {
			return nil, err
		}
		d.lanes[i] = l
	}
	d.handler = guarded(d.routes(), options.Host)
	return d, nil
}

// Ping peeks at the store, to find out whether it responds in time.
func (d *Demo) Ping(ctx context.Context, patience time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, err := peek(ctx, d.lanes[0].limiter)
	return err
}

// ServeHTTP serves the page, its files and its API.
func (d *Demo) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// routes are the paths that exist.
func (d *Demo) routes() http.Handler {
	mux := http.NewServeMux()
	charts.Handle(mux, "/", files)
	mux.Handle("POST /test", handle(patience, d.postTest))
	mux.Handle("POST /config", handle(patience, d.postConfig))
	mux.Handle("GET /api/state", handle(patience, d.getState))
	mux.Handle("POST /api/limits", handle(patience, d.postLimits))
	mux.Handle("POST /api/requests", handle(maxAhead+3*patience, d.postRequests))
	return mux
}
