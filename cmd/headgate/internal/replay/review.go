package replay

import (
	"context"
	"time"
)

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

// Rules decide the requests of a log at its times. deniedBy is the name of the rule that denies r,
// or nothing. A *Request is the same for all requests with its content.
type Rules interface {
	Decide(ctx context.Context, r *Request, at time.Time) (deniedBy string, err error)
}

// Compare decides each request of logs by two versions of rules, and returns the difference. names
// are those of the rules, in the order of the result. Memory grows with the number of different
// requests.
func Compare(
	ctx context.Context, c Reading, before, after Rules, names []string, logs ...Log,
) (*Review, error) {
	c.By = byRequests
	v := reviewing{
		count: count{names: newKeyIDs()}, targets: newKeyIDs(), changes: map[string]*change{},
		before: before, after: after,
	}
	to := sink{names: v.targets, use: func(r record) error { return v.add(ctx, r) }}
	sources, err := read(ctx, c, to, logs)
	if err != nil {
		return nil, err
	}
	return v.review(c, sources, names)
}

// reviewing compares the decisions of two revisions. It counts by client.
type reviewing struct {
	count

	before, after Rules

	targets  *keyIDs
	requests []*Request // by target
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
	was, err := v.before.Decide(ctx, q, at)
	if err != nil {
		return err
	}
	is, err := v.after.Decide(ctx, q, at)
	if err != nil {
		return err
	}
	if was == "" && is != "" {
		c := v.changes[is]
		if c == nil {
			c = &change{first: at.UTC()}
			v.changes[is] = c
		}
		c.deny(r.key)
		v.all.deny(r.key)
	}
	return nil
}

// review returns what was found, in the order of rules.
func (v *reviewing) review(c Reading, sources []*source, order []string) (*Review, error) {
	traffic, err := v.traffic(ByIP, sources)
	if err != nil {
		return nil, err
	}
	r := &Review{Traffic: traffic, Rules: []Change{}, MoreClients: v.all.keys}
	for _, rule := range order {
		found := v.changes[rule]
		if found == nil {
			continue
		}
		delete(v.changes, rule) // it may be in both revisions
		change := Change{rule, found.total, found.keys, found.first, []ClientDenial{}}
		for _, d := range v.names.mostDenied(c.Top, found.deniedKeys) {
			change.Top = append(change.Top, ClientDenial{v.names.keys[d.key], d.denied})
		}
		r.Rules = append(r.Rules, change)
	}
	return r, nil
}
