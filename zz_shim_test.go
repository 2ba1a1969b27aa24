package headgate

import (
	"context"
	"sync/atomic"
	"time"
)

type remote struct {
	Store
	takes time.Duration
	fail  atomic.Bool
}

func (s *remote) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(s.takes)
	return s.Store.Take(ctx, r)
}

type failing struct{ Store }

func (failing) Take(context.Context, Request) (Decision, error) {
	return Decision{}, errLost
}
