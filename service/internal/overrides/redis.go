package overrides

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

//go:embed overrides.lua
var source string

var script = redis.NewScript(source)

// within bounds one look for changes.
const within = 2 * time.Second

// NewRedis returns a table that is kept in the Redis of store, and shared by all instances with
// the same prefix. It looks for changes every [Interval] until Close: one GET, and the whole table
// if its version is another. While Redis fails, the last overrides that were read stay in force.
// report, which may be nil, gets the errors: the first of a series, and bad entries.
func NewRedis(store *redisstore.Store, report func(error)) *Table {
	client, prefix := store.Client()
	// No limit and no permit has such a key. The braces keep both on one server of a Cluster.
	hash := prefix + "{@overrides}:@"
	t := newTable(&redisKeeper{client: client, keys: []string{hash + "hash", hash + "version"}})
	if report != nil {
		t.report = report
	}
	ctx, cancel := context.WithCancel(context.Background())
	var polling sync.WaitGroup
	polling.Go(func() { t.poll(ctx) })
	t.stop = func() { cancel(); polling.Wait() }
	return t
}

func (t *Table) poll(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	failing := false
	for {
		err := t.refreshWithin(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			t.report(err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *Table) refreshWithin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return t.Refresh(ctx)
}

// redisKeeper keeps overrides in a hash. The version is a random text, which changes with it.
type redisKeeper struct {
	client redis.UniversalClient
	keys   []string // the hash, the version
}

func (k *redisKeeper) load(
	ctx context.Context, version string,
) (fields map[string]string, now string, err error) {
	now, err = k.client.Get(ctx, k.keys[1]).Result()
	if errors.Is(err, redis.Nil) {
		err = nil // never put, or all have expired
	}
	if err != nil || now == version || now == "" {
		return nil, now, err
	}
	// If the hash has changed since the version was read, the next look reads it again.
	fields, err = k.client.HGetAll(ctx, k.keys[0]).Result()
	return fields, now, err
}

func (k *redisKeeper) change(ctx context.Context, c change) (outcome, error) {
	ttl := c.ttl.Milliseconds()
	if c.ttl > 0 {
		ttl++ // rounded up: 0 is without end
	}
	args := []any{rand.Text(), c.field, c.value, ttl, c.max, c.from}
	for _, text := range c.expired {
		args = append(args, text)
	}
	n, err := script.Run(ctx, k.client, k.keys, args...).Int()
	return outcome(n), err
}
