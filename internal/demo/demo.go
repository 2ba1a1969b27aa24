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
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Options configures [New]. The zero value is valid.
type Options struct {
	// Store is the name of the store on the page. Default: "memory".
	Store string

	// Host is the host on which the page is served. If it is not an address of the loopback
	// interface, the page also accepts requests for this name, for the name of the machine
	// and for any IP address. Default: loopback only.
	Host string

	// Parallel is how many requests are decided at the same time. A store across a network is
	// slow with few. Default: 1 for a Memory, else 16.
	Parallel int
}

// Demo serves the page and its API. It is safe for concurrent use. Make one with [New].
type Demo struct {
	handler http.Handler
	options Options
	lanes   [2]*lane // left and right
	clock   storeClock
	slots   chan struct{} // one for each request that is being decided
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
	if options.Parallel < 0 {
		return nil, &headgate.InvalidError{Field: "parallel",
			Value: strconv.Itoa(options.Parallel), Want: "0 for the default, or more"}
	}
	_, memory := store.(*headgate.Memory)
	if options.Store == "" {
		options.Store = "memory"
	}
	if options.Parallel == 0 && memory {
		options.Parallel = 1
	} else if options.Parallel == 0 {
		options.Parallel = 16
	}
	d := &Demo{options: options, clock: storeClock{store: store},
		slots: make(chan struct{}, options.Parallel), batches: make(chan struct{}, maxBatches)}
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
	addFiles(mux)
	mux.Handle("/test", only(http.MethodPost, d.postTest))
	mux.Handle("/config", only(http.MethodPost, d.postConfig))
	mux.Handle("/api/state", only(http.MethodGet, d.getState))
	mux.Handle("/api/requests", only(http.MethodPost, d.postRequests))
	mux.Handle("/api/reset", only(http.MethodPost, d.postReset))
	mux.Handle("/api/limits", only(http.MethodPost, d.postLimits))
	for side, l := range d.lanes {
		mux.Handle("/api/limit/"+l.name, only(http.MethodPost, d.postLimit(side)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound,
			"path "+strconv.Quote(r.URL.Path)+" does not exist; the page is at /")
	})
	return mux
}
