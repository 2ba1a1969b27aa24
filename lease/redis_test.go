package lease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// counting counts the calls of a store.
type counting struct {
	headgate.Store
	calls *atomic.Int64
}

func (c counting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	c.calls.Add(1)
	return c.Store.Take(ctx, r)
}

func (c counting) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	c.calls.Add(1)
	return c.Store.TakeAll(ctx, rs, ds)
}

// Four processes around one Redis use all that they can get of a bucket that does not refill. They
// get no more than it holds, and most of it.
func TestLeasesAroundOneRedis(t *testing.T) {
	limit := headgate.PerHour(1).Burst(20000)
	var calls, granted atomic.Int64
	var wg sync.WaitGroup
	prefix := fmt.Sprint(t.Name(), time.Now().UnixNano()) // the server is shared by all runs
	for range 4 {
		client := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr})
		t.Cleanup(func() { _ = client.Close() })
		store := must(redisstore.New(client, redisstore.Options{Prefix: prefix}))
		l := must(New(counting{store, &calls}, Options{}))
		t.Cleanup(func() { _ = l.Close() })
		for range 8 {
			wg.Go(func() {
				r := headgate.Request{Key: "hot", Limit: limit, Cost: 1}
				for {
					d, err := l.Take(t.Context(), r)
					if err != nil {
						t.Error(err)
					}
					if !d.Allowed() {
						return
					}
					granted.Add(1)
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d granted of %d in %d calls", granted.Load(), limit.Capacity(), calls.Load())
	if n := granted.Load(); n > limit.Capacity() || n < limit.Capacity()*7/10 {
		t.Errorf("%d granted of %d", n, limit.Capacity())
	}
	if n := calls.Load(); n > limit.Capacity()/2 {
		t.Errorf("%d calls for %d requests", n, granted.Load())
	}
}
