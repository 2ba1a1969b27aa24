package headgate_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

// rebuilt is a Memory whose table is made anew now and then, and not only when it grows.
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

// TestNothingIsLostWhenTheTableIsRebuilt wants the same answers of a store that is rebuilt all the time: no
// version of a limit, no turn and no grant that may be taken back is lost by that.
func TestNothingIsLostWhenTheTableIsRebuilt(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return rebuilt{headgate.NewMemory(0)} })
}
