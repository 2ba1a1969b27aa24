package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// memoryFaults befall a server that others fill up to its maxmemory, under each policy.
func memoryFaults() []fault {
	faults := []fault{{name: "maxmemory, noeviction", build: full("noeviction"), sees: []string{"OOM"}}}
	for _, policy := range []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	} {
		faults = append(faults, fault{name: "maxmemory, " + policy, build: full(policy), bound: "a fresh limit for each eviction of the key"})
	}
	return faults
}

// full is a server with a policy, which another client keeps full.
func full(policy string) func(t *testing.T) *scene {
	return func(t *testing.T) *scene {
		s := redistest.Start(t, "--maxmemory-policy", policy, "--notify-keyspace-events", "Ee")
		e := listen(t, s)
		return &scene{
			open: openURL(t, s.URL()),
			inject: func(over <-chan struct{}) {
				do(t, s, "CONFIG", "SET", "maxmemory", strconv.FormatInt(counted(t, s, "memory", "used_memory")+1<<20, 10))
				written, size := 0, 200_000
				every(over, 2*time.Millisecond, func() {
					written++
					_, err := s.Do(t.Context(), "SET", "filler:"+strconv.Itoa(written), strings.Repeat("x", size), "EX", "3600")
					if err != nil {
						size = max(size/2, 1) // until nothing fits, not even what callers write
					}
				})
			},
			heal: func() {
				do(t, s, "CONFIG", "SET", "maxmemory", "0")
				until(t, "told of all evictions", func() bool { return e.total() == counted(t, s, "stats", "evicted_keys") })
			},
			begun: func(a *account) int64 {
				if a.limit == (headgate.Limit{}) {
					return e.under(a.stored)
				}
				return e.of(a.stored)
			},
			dropped: func(a *account) int64 { return e.under(strings.TrimSuffix(a.stored, a.limit.ID()) + "lease-") },
			felt: func() error {
				if (e.total() == 0) != (policy == "noeviction") {
					return fmt.Errorf("%d keys evicted", e.total())
				}
				return nil
			},
		}
	}
}

// evictions counts by key what a server evicts.
type evictions struct {
	mu    sync.Mutex
	byKey map[string]int64
	all   int64
}

func listen(t *testing.T, s *redistest.Server) *evictions {
	t.Helper()
	e := &evictions{byKey: make(map[string]int64)}
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	pubsub := client.Subscribe(t.Context(), "__keyevent@0__:evicted")
	if _, err := pubsub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := pubsub.Channel(redis.WithChannelSize(1 << 16))
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = pubsub.Close()
		_ = client.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for m := range messages {
			e.mu.Lock()
			e.byKey[m.Payload]++
			e.all++
			e.mu.Unlock()
		}
	})
	return e
}

func (e *evictions) of(key string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byKey[key]
}

func (e *evictions) total() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all
}

// under counts those of keys with a prefix.
func (e *evictions) under(prefix string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(0)
	for key, count := range e.byKey {
		if strings.HasPrefix(key, prefix) {
			n += count
		}
	}
	return n
}
