package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
)

// Revision is the rules of a file, with its overrides as they are in force now.
type Revision struct {
	Rules     []rules.Rule
	Overrides []rules.Override
}

// Review is what a new revision denies that an old one did not. Its keys are clients: addresses,
// of IPv6 /64 networks.
type Review struct {
	Traffic

	Rules       []Change `json:"rules"`        // that deny more, in the order of the files
	MoreClients int64    `json:"more_clients"` // that any rule denies more, each once
}

// Change is what a rule denies that the old revision did not. A request that several rules deny
// counts for the one that denies it for the longest.
type Change struct {
	Rule     string         `json:"rule"`
	Requests int64          `json:"requests"`
	Clients  int64          `json:"clients"`
	First    time.Time      `json:"first"`
	Top      []ClientDenial `json:"top"` // the clients with most of them first
}

// ClientDenial is how many more requests of a client are denied.
type ClientDenial struct {
	Client   string `json:"client"`
	Requests int64  `json:"requests"`
}

// Compare decides each request of logs by two revisions, as a server that has only the one or the
// other, and returns the difference. Rules must be decidable by a log; it returns an error if they
// need the host, and a request has none. Memory grows with the number of different requests.
func Compare(
	ctx context.Context, c Reading, before, after Revision, logs ...Log,
) (*Review, error) {
	c.By = byRequests
	v := reviewing{
		count: count{names: newKeyIDs()}, targets: newKeyIDs(), changes: map[string]*change{},
	}
	var err error
	if v.before, err = newServerOf(before); err == nil {
		v.after, err = newServerOf(after)
	}
	if err != nil {
		return nil, err
	}
	all := slices.Concat(after.Rules, before.Rules)
	for _, rule := range all {
		if rule.NeedsHost() && !slices.Contains(v.byHost, rule.Name) {
			v.byHost = append(v.byHost, rule.Name)
		}
	}
	to := sink{names: v.targets, use: func(r record) error { return v.add(ctx, r) }}
	sources, err := read(ctx, c, to, logs)
	if err != nil {
		return nil, err
	}
	return v.review(c, sources, all)
}

// server decides requests by a revision at the times of a log.
type server struct {
	engine *rules.Engine
	clock  recordedClock
}

func newServerOf(r Revision) (*server, error) {
	set, err := rules.NewSet(r.Rules)
	if err != nil {
		return nil, err
	}
	s := &server{clock: recordedClock{Store: headgate.NewMemorySize(roomy)}}
	table := overrides.NewMemory()
	table.UseFile(r.Overrides)
	s.engine = rules.New(&s.clock, concurrency.NewMemory(), rules.Options{Overrides: table})
	s.engine.Use(set)
	return s, nil
}

// recordedClock is a store that decides at one time.
type recordedClock struct {
	headgate.Store

	at time.Time
}

// Take implements [headgate.Store].
func (c *recordedClock) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	r.At = c.at
	return c.Store.Take(ctx, r)
}

// TakeAll implements [headgate.Store].
func (c *recordedClock) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	for i := range rs {
		rs[i].At = c.at
	}
	return c.Store.TakeAll(ctx, rs, ds)
}

// decide decides q at a time.
func (s *server) decide(
	ctx context.Context, q *rules.Request, at time.Time,
) (rules.Verdict, error) {
	s.clock.at = at
	return s.engine.Match(q).Decide(ctx)
}

// reviewing compares the decisions of two revisions. It counts by client.
type reviewing struct {
	count

	before, after *server
	byHost        []string // rules that need the host

	targets  *keyIDs
	requests []*recorded // by target
	changes  map[string]*change
	all      denials
}

// change is a Change while it is counted.
type change struct {
	denials
	first time.Time
}

// add decides r, which is not earlier than the record before.
func (v *reviewing) add(ctx context.Context, r record) error {
	if v.requests = grown(v.requests, r.key); v.requests[r.key] == nil {
		v.requests[r.key] = readRequest(v.targets.keys[r.key], v.names)
	}
	q, at := v.requests[r.key], time.UnixMicro(r.at)
	r.key = q.client
	v.count.add(r)
	if q.Host == "" && len(v.byHost) > 0 {
		return fmt.Errorf("a log without hosts cannot decide %s; exclude them by --exclude NAME",
			strings.Join(v.byHost, ", "))
	}
	was, err := v.before.decide(ctx, &q.Request, at)
	if err != nil {
		return fmt.Errorf("the old rules: %w", err)
	}
	is, err := v.after.decide(ctx, &q.Request, at)
	if err != nil {
		return fmt.Errorf("the new rules: %w", err)
	}
	if was.Allowed && !is.Allowed {
		c := v.changes[is.Rule]
		if c == nil {
			c = &change{first: at.UTC()}
			v.changes[is.Rule] = c
		}
		c.deny(r.key)
		v.all.deny(r.key)
	}
	return nil
}

// review returns what was found, in the order of rules.
func (v *reviewing) review(c Reading, sources []*source, order []rules.Rule) (*Review, error) {
	traffic, err := v.traffic(ByIP, sources)
	if err != nil {
		return nil, err
	}
	r := &Review{Traffic: traffic, Rules: []Change{}, MoreClients: v.all.keys}
	for _, rule := range order {
		found := v.changes[rule.Name]
		if found == nil {
			continue
		}
		delete(v.changes, rule.Name) // it may be in both revisions
		change := Change{rule.Name, found.total, found.keys, found.first, []ClientDenial{}}
		for _, d := range v.names.mostDenied(c.Top, found.deniedKeys) {
			change.Top = append(change.Top, ClientDenial{v.names.keys[d.key], d.denied})
		}
		r.Rules = append(r.Rules, change)
	}
	return r, nil
}
