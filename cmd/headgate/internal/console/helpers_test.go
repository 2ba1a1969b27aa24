package console

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/actions"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/redisstore"
)

// console is a Handler, and what it reads.
type console struct {
	*Handler

	t       testing.TB
	metrics *metrics.Metrics
	api     *httpapi.Handler
	rules   []rules.Rule
	states  *atomic.Int64 // that were made for viewers
}

const exampleRules = `
rules:
  - {name: api, key: ip, limits: 5/m}
  - {name: trial, key: ip, limits: 5/m, mode: shadow, count: [401, 5xx]}
domains:
  - domain: edge
    descriptors:
      - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
`

// newConsole makes a Handler for exampleRules that can only be reached from this machine.
func newConsole(t testing.TB, redis *redisstore.Store, tokens ...string) *console {
	t.Helper()
	c, err := config.Parse("test", []byte(exampleRules), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, table := headgate.NewMemory(), overrides.NewMemory()
	m := metrics.New("v1", nil)
	m.Use(c.Rules)
	statistics := &metrics.NewEnvoy(m, false).Statistics
	engine := rules.New(store, concurrency.NewMemory(), rules.Options{Overrides: table})
	set, err := rules.NewSet(c.Rules)
	if err != nil {
		t.Fatal(err)
	}
	engine.Use(set)
	api := httpapi.New(httpapi.Options{
		Engine: engine, Permits: concurrency.NewMemory(), Overrides: table,
	}, httpapi.Settings{Tokens: tokens})
	var h *Handler
	limiter := envoy.New(store, nil, envoy.Options{
		OverLimit: func(d envoy.Denial) { h.OverLimit(d) },
	}, statistics)
	domains, err := envoy.NewConfig(c.Domains, false)
	if err != nil {
		t.Fatal(err)
	}
	limiter.Use(domains)
	states := new(atomic.Int64)
	h = New(Options{
		Version: "v1", Viewers: 100, API: api, Engine: engine, Overrides: table, Domains: limiter,
		Store: store, Redis: redis, StoreAs: "test", StoreUp: func() bool { return true },
		WithoutStore: func() string {
			states.Add(1)
			return "closed"
		},
		Metrics: m, Statistics: statistics, Permits: concurrency.NewMemory(),
		Acted: func(actions.Action) {},
	})
	api.Listen(&net.UnixAddr{Net: "unix"})
	h.Use(c, time.Now())
	return &console{h, t, m, api, c.Rules, states}
}

// decide counts a decision of the i-th rule.
func (c *console) decide(i int, key string, o rules.Outcome) {
	e := rules.Event{Rule: &c.rules[i], Key: key, Outcome: o}
	c.metrics.Decided(e)
	c.Decided(&e)
}

// ask asks the domain edge for a user.
func (c *console) ask(user string) {
	c.t.Helper()
	req := envoy.Request{Domain: "edge", Descriptors: []envoy.Descriptor{
		{Entries: []envoy.Entry{{Key: "user", Value: user}}},
	}}
	if err := c.options.Domains.Decide(c.t.Context(), &req, new(envoy.Response)); err != nil {
		c.t.Fatal(err)
	}
}

// seen is what a viewer was sent.
type seen struct {
	past  pastEvent
	steps []stepCounts
	state state
	kinds []string
}

// read takes all events that wait for v.
func (s *seen) read(t *testing.T, v *viewer) {
	t.Helper()
	for {
		select {
		case event, ok := <-v.events:
			if !ok {
				return
			}
			s.take(t, string(event))
		default:
			return
		}
	}
}

func (s *seen) take(t *testing.T, event string) {
	t.Helper()
	kind, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
	if !ok || !strings.HasSuffix(event, "\n\n") {
		t.Fatalf("no event: %.100q", event)
	}
	s.kinds = append(s.kinds, kind)
	var to any
	switch kind {
	case historyEvent:
		s.past, s.steps = pastEvent{}, nil
		to = &s.past
	case stepEvent:
		s.steps = append(s.steps, stepCounts{})
		to = &s.steps[len(s.steps)-1]
	default:
		s.state = state{}
		to = &s.state
	}
	if err := json.Unmarshal([]byte(data), to); err != nil {
		t.Fatalf("%v: %.200s", err, data)
	}
}

// total returns what was decided by a rule in the history and the steps after it.
func (s *seen) total(rule string) (c counts) {
	for _, step := range slices.Concat(s.past.Steps, s.steps) {
		step.Rules[rule].addTo(&c)
	}
	return c
}

// rule returns a rule of the state.
func (s *seen) rule(t *testing.T, name string) ruleState {
	t.Helper()
	for _, r := range s.state.Rules {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("the state has no rule %s: %+v", name, s.state.Rules)
	return ruleState{}
}
