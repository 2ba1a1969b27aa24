package headgate_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

// rebuilt is a Memory whose table is rebuilt now and then, and not only when it grows.
type rebuilt struct{ *headgate.Memory }

func (s rebuilt) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	s.rebuild(r.Key)
	return s.Memory.Take(ctx, r)
}

func (s rebuilt) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if len(rs) > 0 {
		s.rebuild(rs[0].Key)
	}
	return s.Memory.TakeAll(ctx, rs, ds)
}

func (s rebuilt) rebuild(key string) {
	if rand.IntN(2) == 0 {
		s.Rebuild(key)
	}
}

// A store whose table is rebuilt all the time passes the suite: no state is lost.
func TestNothingIsLostWhenTheTableIsRebuilt(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return rebuilt{headgate.NewMemory()} })
}
