package serve

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// cacheBypass is a store around a cache of denials. It does not use the cache for rules whose cost
// or outcome is in the response, because tokens that a response returns may end a denial of another
// instance.
type cacheBypass struct {
	headgate.Store // the cache

	bare  headgate.Store
	rules atomic.Pointer[[]string] // their names; nil: none yet
}

// use sets the rules.
func (s *cacheBypass) use(list []rules.Rule) {
	var names []string
	for _, r := range list {
		if r.Cost.IsLate() || len(r.Count.Statuses) > 0 {
			names = append(names, r.Name)
		}
	}
	s.rules.Store(&names)
}

// passes reports whether a limit is one of the rules: NAME, or NAME.2 and so on.
func (s *cacheBypass) passes(l headgate.Limit) bool {
	names := s.rules.Load()
	return names != nil && slices.ContainsFunc(*names, func(name string) bool {
		rest, found := strings.CutPrefix(l.Name(), name)
		return found && (rest == "" || rest[0] == '.')
	})
}

// Take implements [headgate.Store].
func (s *cacheBypass) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.passes(r.Limit) {
		return s.bare.Take(ctx, r)
	}
	return s.Store.Take(ctx, r)
}

// TakeAll implements [headgate.Store].
func (s *cacheBypass) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if slices.ContainsFunc(rs, func(r headgate.Request) bool { return s.passes(r.Limit) }) {
		return s.bare.TakeAll(ctx, rs, ds)
	}
	return s.Store.TakeAll(ctx, rs, ds)
}
