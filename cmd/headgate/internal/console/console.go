// Package console serves the page for operators: current decisions, denied keys, actions and rules.
//
// A counterReader reads the counters of this instance. While there are viewers, the instances that
// share a Redis exchange their counts, and events are sent to all viewers. Without viewers, nothing
// is encoded, nothing is written to Redis, and a decision costs nothing: denied keys are counted
// from the first viewer on.
package console

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/actions"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/redisstore"
)

// Options configures a [Handler]. All fields but Redis and Box are required.
type Options struct {
	Version string // of the program
	Viewers int    // at a time

	KeysOnly bool   // show keys, and nothing of their requests
	Grafana  string // the URL of a dashboard; "": none

	API       *httpapi.Handler // decides who may do what
	Engine    *rules.Engine
	Overrides *overrides.Table
	Domains   *envoy.Limiter

	Acted func(actions.Action) // gets each act and undo

	Store   headgate.Store    // of rules and domains
	Permits concurrency.Store // of rules
	Redis   *redisstore.Store // nil in memory
	Box     *seal.Box         // seals what instances exchange; nil: it is clear
	StoreAs string            // the name of the store, without a password
	StoreUp func() bool       // whether it answers

	// WithoutStore returns what decides while Redis fails: a policy, "unknown" while the policy
	// share does not know the number of instances, or "" if requests fail.
	WithoutStore func() string

	Metrics    *metrics.Metrics
	Statistics *envoy.Statistics
}

// Handler serves /console/. It is safe for use by many goroutines.
type Handler struct {
	options  Options
	instance string // the name of this instance
	started  time.Time
	id       string // of this process
	fleet    *fleet // nil in memory
	mux      *http.ServeMux
	guard    *http.CrossOriginProtection
	loaded   atomic.Pointer[loaded]
	actions  actionList
	executor *actions.Executor

	denied  atomic.Pointer[deniedKeys] // nil: no instance has viewers
	joins   chan joining
	leaves  chan *viewer
	watched chan struct{} // another instance has viewers
	ended   chan struct{} // closed when Run has ended
}

// loaded is the configuration in force, and the error of the last load.
type loaded struct {
	config *config.Config
	at     time.Time
	err    error // of a load after it
	errAt  time.Time

	lines   []string // that changes are found by
	changes []change // the oldest first
}

// New makes a Handler.
func New(o Options) *Handler {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := &Handler{
		options: o, instance: fmt.Sprintf("%s-%d", host, os.Getpid()), started: time.Now(),
		id:  rand.Text(),
		mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(),
		joins: make(chan joining), leaves: make(chan *viewer), watched: make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
	if o.Redis != nil {
		prefix := o.Redis.Prefix() + "{@console}:@" + o.Box.Mark()
		h.fleet = &fleet{o.Redis.Client(), prefix, o.Box}
	}
	h.executor = actions.New(actions.Options{
		Store: o.Store, Engine: o.Engine, Overrides: o.Overrides, Redis: o.Redis,
		Domains: o.Domains, Box: o.Box,
	})
	h.loaded.Store(&loaded{config: new(config.Config), lines: []string{}})
	h.routes()
	return h
}

// routes adds all paths. The API is below /console/api/.
func (h *Handler) routes() {
	h.page()
	h.mux.Handle("GET /console/api/access", h.data(h.serveAccess))
	h.get("events", h.serveEvents)
	h.get("key", h.serveKey)
	h.get("config", h.serveConfig)
	h.get("acts", h.serveActs)
	h.post("acts", h.serveAct)
	h.post("acts/{id}/undo", h.serveUndo)
	h.post("lost", h.servePutBack)
}

// get serves what needs the right to read at api/path.
func (h *Handler) get(path string, f handlerFunc) {
	h.mux.Handle("GET /console/api/"+path, h.data(h.reading(f)))
}

// post serves what needs the right to act at api/path. The body is JSON.
func (h *Handler) post(path string, f handlerFunc) {
	h.mux.Handle("POST /console/api/"+path, h.data(h.acting(f)))
}

// handlerFunc serves a request, or returns an error before it has written anything: a
// problem.Problem, or an error of the store.
type handlerFunc func(http.ResponseWriter, *http.Request) error

// IsOn reports whether there is a console: beyond loopback, there is none without tokens.
func (h *Handler) IsOn() bool { return h.options.API.ServesOperators() }

// Use sets c as the active configuration.
func (h *Handler) Use(c *config.Config, at time.Time) {
	lines := h.inForce(c)
	h.loaded.Store(&loaded{
		config: c, at: at, lines: lines, changes: h.loaded.Load().changedBy(lines, at),
	})
}

// LoadFailed records that the files could not be loaded. The active configuration stays.
func (h *Handler) LoadFailed(err error, at time.Time) {
	now := *h.loaded.Load()
	now.err, now.errAt = err, at
	h.loaded.Store(&now)
}

// Decided counts a denial of a rule while the console has viewers. Call it for every decision.
func (h *Handler) Decided(e *rules.Event) {
	if !e.Outcome.Denies() {
		return
	}
	if d := h.denied.Load(); d != nil {
		noted := e
		if h.options.KeysOnly {
			noted = nil
		}
		d.add(ruleID{name: e.Rule.Name}, e.Key, 1, e.Outcome == rules.ShadowDenied, noted)
	}
}

// OverLimit counts a descriptor of a domain that is over its limit while the console has viewers.
func (h *Handler) OverLimit(e envoy.Denial) {
	if d := h.denied.Load(); d != nil && e.Hits > 0 {
		d.add(idOf(e.Counters), envoy.DescriptorText(e.Key), e.Hits, e.Shadow, nil)
	}
}
