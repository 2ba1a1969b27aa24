//go:build unix

package redisstore_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// Callers go on while the network becomes slower and faster again, the server stands still, and
// another client runs a slow script. No key grants more than its limit, nor less. Over the slow
// network, several trips are soon under way at once. The log says how long calls took.
func TestTripsWhileTheNetworkChanges(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	trips := new(together)
	client.AddHook(trips)
	s := patient(t, client, redisstore.Options{})
	const near, far = 100 * time.Microsecond, 20 * time.Millisecond
	const fault = 300 * time.Millisecond
	proxy.Delay(near)
	callers := startCallers(t, s)
	phase := func(name string, do func()) {
		callers.longest.Store(0)
		start := time.Now()
		do()
		took := time.Since(start)
		t.Logf("%s: %s; the longest call took %s", name, took, time.Duration(callers.longest.Load()))
	}
	becomesFar := func() {
		proxy.Delay(far)
		until(t, "one trip is under way", func() bool { return trips.now.Load() <= 1 })
		trips.most.Store(0)
		until(t, "three trips are under way", func() bool { return trips.most.Load() >= 3 })
	}
	phase("the network becomes slow", becomesFar)
	phase("the network becomes fast", func() {
		proxy.Delay(near)
		callers.wait(t, 3000)
	})
	phase("the server stands still", func() {
		stopFor(t, server.Pid, fault)
		callers.wait(t, 3000)
	})
	phase("another client runs a slow script", func() {
		runFor(t, server, fault)
		callers.wait(t, 3000)
	})
	phase("the network becomes slow again", becomesFar)
	proxy.Delay(near)
	callers.end(t)
}

// runFor runs longer and longer scripts, until one has run for the time. The scripts count: while
// a script runs, TIME stands still from Redis 7.2 on.
func runFor(t *testing.T, server *redistest.Server, least time.Duration) {
	t.Helper()
	var took time.Duration
	for n := 1 << 20; took < least; n *= 2 {
		start := time.Now()
		if _, err := server.Do(t.Context(), "EVAL", "for i = 1, tonumber(ARGV[1]) do end", "0", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		took = time.Since(start)
	}
}

// callers take from keys at random, each as soon as it is answered.
type callers struct {
	grants  [callerKeys]atomic.Int64
	calls   atomic.Int64
	longest atomic.Int64
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

const callerKeys, callerLimit = 30, 100

func startCallers(t *testing.T, s *redisstore.Store) *callers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &callers{cancel: cancel}
	t.Cleanup(func() { c.cancel(); c.wg.Wait() }) // while the server and its client still work
	limit := headgate.Per(1, 10*time.Hour).Burst(callerLimit)
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		c.wg.Go(func() {
			for ctx.Err() == nil {
				key := random.IntN(callerKeys)
				start := time.Now()
				// What was sent is charged, so a caller stays until it is answered.
				d, err := s.Take(context.WithoutCancel(ctx), headgate.Request{Key: strconv.Itoa(key), Limit: limit, Cost: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if d.Allowed() {
					c.grants[key].Add(1)
				}
				c.calls.Add(1)
				for took := int64(time.Since(start)); ; {
					if old := c.longest.Load(); took <= old || c.longest.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
	return c
}

// wait returns after n more calls.
func (c *callers) wait(t *testing.T, n int64) {
	t.Helper()
	n += c.calls.Load()
	until(t, "calls are answered", func() bool { return c.calls.Load() >= n })
}

func (c *callers) end(t *testing.T) {
	t.Helper()
	c.wait(t, 2*callerKeys*callerLimit)
	c.cancel()
	c.wg.Wait()
	for key := range c.grants {
		if n := c.grants[key].Load(); n != callerLimit {
			t.Errorf("key %d: %d granted; want %d", key, n, callerLimit)
		}
	}
}
