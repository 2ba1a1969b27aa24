// Package demo is a page on which limits can be watched at work: two lanes side by
// side, each with a limit of its own, decide the same traffic.
//
//	page, err := demo.New(headgate.NewMemory(0), demo.Options{})
//	...
//	err = page.Serve(ctx, listener)
//
// The browser never counts anything itself. It asks for requests by the batch, and
// the server decides each one of them separately, in both lanes, as it would
// decide those of a client.
package demo

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Options change how a Demo appears and who may reach it. The zero value is
// valid.
type Options struct {
	// Store is what the page calls the store. Default: "memory".
	Store string

	// Host is the host that the page is served at. If it is no address of the
	// loopback interface, the page also answers requests for this name, for the
	// name of the machine and for any IP address. Default: loopback only.
	Host string

	// Parallel is how many requests the store is asked about at the same time, which a store
	// across a network needs to be fast. Default: 1 for a Memory, else 16.
	Parallel int
}

// Demo is the page and all that it asks. It is safe for use by many goroutines.
// Make one with [New].
type Demo struct {
	handler http.Handler
	options Options
	lanes   [2]*lane // left and right
	clock   storeClock
	slots   chan struct{} // one for each request that the store is asked about
	batches chan struct{} // one for each batch that is being decided
}

// The limits that the lanes begin with. The left one is the bucket that the
// documentation of Redis begins with, too.
var (
	firstLeft  = headgate.SteppedTokenBucket(1, time.Second).Burst(10)
	firstRight = headgate.SlidingLog(10, 10*time.Second)
)

// New makes the page for limits that are kept in store.
func New(store headgate.Store, options Options) (*Demo, error) {
	if options.Parallel < 0 {
		return nil, &headgate.InvalidError{Field: "parallel", Value: strconv.Itoa(options.Parallel), Want: "0 for the default, or more"}
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

// Ping asks the store for a decision that charges nothing, to find out whether it
// answers in time.
func (d *Demo) Ping(ctx context.Context, patience time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, err := peek(ctx, d.lanes[0].limiter)
	return err
}

// ServeHTTP answers for the page, its files, and what they ask.
func (d *Demo) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// routes are all paths that there are.
func (d *Demo) routes() http.Handler {
	mux := http.NewServeMux()
	addFiles(mux)
	mux.Handle("/test", only(http.MethodPost, d.postTest))
	mux.Handle("/config", only(http.MethodPost, d.postConfig))
	mux.Handle("/api/state", only(http.MethodGet, d.getState))
	mux.Handle("/api/requests", only(http.MethodPost, d.postRequests))
	mux.Handle("/api/reset", only(http.MethodPost, d.postReset))
	for side, l := range d.lanes {
		mux.Handle("/api/limit/"+l.name, only(http.MethodPost, d.postLimit(side)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no "+strconv.Quote(r.URL.Path)+" here; the page is at /")
	})
	return mux
}
