package headgate

import (
	"context"
	"sync/atomic"
	"time"
)

// remote is for sharedgate_test.go, until that moves to package gate.
type remote struct {
	Store
	takes time.Duration
	fail  atomic.Bool
}

func (s *remote) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(s.takes)
	return s.Store.Take(ctx, r)
}
