// Package review compares what two versions of rules would have decided about access logs.
package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
)

// Revision is the rules of a file, with its overrides as they are in force now.
type Revision struct {
	Rules     []rules.Rule
	Overrides []rules.Override
}

// Compare decides each request of logs by two revisions, as a server that has only the one or the
// other. Rules must be decidable by a log; it returns an error if they need the host, and a request
// has none.
func Compare(
	ctx context.Context, c replay.Reading, before, after Revision, logs ...replay.Log,
) (*replay.Review, error) {
	var names, byHost []string
	for _, rule := range slices.Concat(after.Rules, before.Rules) {
		names = append(names, rule.Name)
		if rule.NeedsHost() && !slices.Contains(byHost, rule.Name) {
			byHost = append(byHost, rule.Name)
		}
	}
	was, err := newServer(before, "the old rules", byHost)
	if err != nil {
		return nil, err
	}
	is, err := newServer(after, "the new rules", byHost)
	if err != nil {
		return nil, err
	}
	return replay.Compare(ctx, c, was, is, names, logs...)
}

// server decides requests by a revision at the times of a log.
type server struct {
	name   string
	byHost []string // rules that need the host
	engine *rules.Engine
	clock  recordedClock
	known  map[*replay.Request]*rules.Request
}

// roomy is more keys than any log has: a full store would be wrong about new keys.
const roomy = 1 << 30

func newServer(r Revision, name string, byHost []string) (*server, error) {
	set, err := rules.NewSet(r.Rules)
	if err != nil {
		return nil, err
	}
	s := &server{
		name: name, byHost: byHost, known: map[*replay.Request]*rules.Request{},
		clock: recordedClock{Store: headgate.NewMemorySize(roomy)},
	}
	table := overrides.NewMemory()
	table.UseFile(r.Overrides)
	s.engine = rules.New(&s.clock, concurrency.NewMemory(), rules.Options{Overrides: table})
	s.engine.Use(set)
	return s, nil
}

// Decide implements [replay.Rules].
func (s *server) Decide(
	ctx context.Context, r *replay.Request, at time.Time,
) (deniedBy string, err error) {
	if r.Host == "" && len(s.byHost) > 0 {
		return "", fmt.Errorf("a log without hosts cannot decide %s; exclude them by "+
			"--exclude NAME", strings.Join(s.byHost, ", "))
	}
	q := s.known[r]
	if q == nil {
		q = &rules.Request{
			Client: r.Client, Method: r.Method, Host: r.Host, Path: rules.TargetPath(r.Target),
		}
		s.known[r] = q
	}
	s.clock.at = at
	v, err := s.engine.Match(q).Decide(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", s.name, err)
	case v.Allowed:
		return "", nil
	}
	return v.Rule, nil
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
