package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// Review is how the decisions of a new revision differ from those of an old one.
type Review struct {
	Traffic

	Rules       []Change `json:"rules"`        // those with a difference, in the order of the files
	MoreClients int64    `json:"more_clients"` // that any rule denies more, each once
	NoHost      int64    `json:"-"`            // requests of which the logs have no host
}

// Change is what a rule denies that the old revision did not, and the reverse. A request that
// several rules deny counts for the one that denies it for the longest.
type Change struct {
	Rule  string  `json:"rule"`
	More  Denials `json:"more"`
	Fewer Denials `json:"fewer"`
}

// Denials are requests that only one of two revisions denies.
type Denials struct {
	Requests int64          `json:"requests"`
	Clients  int64          `json:"clients"`
	First    *time.Time     `json:"first"` // nil: none
	Top      []ClientDenial `json:"top"`   // the clients with most of them first

	by map[string]int64
}

// ClientDenial is how many requests of a client only one of two revisions denies.
type ClientDenial struct {
	Client   string `json:"client"`
	Requests int64  `json:"requests"`
}

// Compare decides each request of logs by two revisions, as a server that has only the one or the
// other, and returns the difference. Rules must be decidable by a log. Memory grows with the number
// of different requests.
func Compare(
	ctx context.Context, c Reading, before, after Revision, logs ...Log,
) (*Review, error) {
	c.By = byRequests
	v := reviewing{count: count{names: newKeyIDs()}, changes: map[string]*Change{}}
	var err error
	if v.before, err = newServerOf(before); err == nil {
		v.after, err = newServerOf(after)
	}
	if err != nil {
		return nil, err
	}
	to := sink{names: v.names, use: func(r record) error { return v.add(ctx, r) }}
	sources, err := read(ctx, c, to, logs)
	if err != nil {
		return nil, err
	}
	return v.review(c, sources, slices.Concat(after.Rules, before.Rules))
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

// decide decides q at a time, and returns the name of the rule that denies it, or "".
func (s *server) decide(ctx context.Context, q *rules.Request, at time.Time) (string, error) {
	s.clock.at = at
	v, err := s.engine.Decide(ctx, q)
	if err != nil || v.Allowed {
		return "", err
	}
	return v.Rule, nil
}

// reviewing compares the decisions of two revisions.
type reviewing struct {
	count

	before, after *server
	requests      []*recorded // by key
	changes       map[string]*Change
	noHost        int64
}

// add decides r, which is not earlier than the record before.
func (v *reviewing) add(ctx context.Context, r record) error {
	v.count.add(r)
	if v.requests = grown(v.requests, r.key); v.requests[r.key] == nil {
		read := readRequest(v.names.keys[r.key])
		v.requests[r.key] = &read
	}
	q, at := v.requests[r.key], time.UnixMicro(r.at)
	if q.Host == "" {
		v.noHost++
	}
	was, err := v.before.decide(ctx, &q.Request, at)
	if err != nil {
		return fmt.Errorf("the old rules: %w", err)
	}
	is, err := v.after.decide(ctx, &q.Request, at)
	switch {
	case err != nil:
		return fmt.Errorf("the new rules: %w", err)
	case was == "" && is != "":
		v.change(is).More.add(q.client, at)
	case was != "" && is == "":
		v.change(was).Fewer.add(q.client, at)
	}
	return nil
}

func (v *reviewing) change(rule string) *Change {
	c := v.changes[rule]
	if c == nil {
		c = &Change{Rule: rule}
		v.changes[rule] = c
	}
	return c
}

func (d *Denials) add(client string, at time.Time) {
	if d.by == nil {
		first := at.UTC()
		d.by, d.First = map[string]int64{}, &first
	}
	d.by[client]++
	d.Requests++
}

// review returns what was found, in the order of rules.
func (v *reviewing) review(c Reading, sources []*source, order []rules.Rule) (*Review, error) {
	traffic, err := v.traffic(ByIP, sources)
	if err != nil {
		return nil, err
	}
	clients, more := map[string]bool{}, map[string]bool{}
	for _, q := range v.requests {
		clients[q.client] = true
	}
	traffic.Keys = int64(len(clients))
	r := &Review{Traffic: traffic, NoHost: v.noHost, Rules: []Change{}}
	for _, rule := range order {
		change := v.changes[rule.Name]
		if change == nil {
			continue
		}
		delete(v.changes, rule.Name) // it may be in both revisions
		for client := range change.More.by {
			more[client] = true
		}
		change.More.sum(c.Top)
		change.Fewer.sum(c.Top)
		r.Rules = append(r.Rules, *change)
	}
	r.MoreClients = int64(len(more))
	return r, nil
}

// sum counts the clients, and lists the first n of them.
func (d *Denials) sum(n int) {
	d.Clients, d.Top = int64(len(d.by)), []ClientDenial{}
	for client, requests := range d.by {
		d.Top = append(d.Top, ClientDenial{client, requests})
	}
	slices.SortFunc(d.Top, func(a, b ClientDenial) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Client, b.Client))
	})
	d.Top = slices.Clip(d.Top[:min(n, len(d.Top))])
}
