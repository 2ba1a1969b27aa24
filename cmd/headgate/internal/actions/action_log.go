package actions

import (
	"context"
	_ "embed"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// log keeps the texts of at most [Max] actions by their ids, which sort by time.
type log interface {
	// swap keeps to instead of from, each of which is empty for none. It reports false, and changes
	// nothing, if another text is kept.
	swap(ctx context.Context, id, from, to string) (bool, error)
	all(ctx context.Context) (map[string]string, error)
}

// memoryLog keeps actions in this process.
type memoryLog struct {
	mu    sync.Mutex
	texts map[string]string
}

func (b *memoryLog) swap(_ context.Context, id, from, to string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.texts[id] != from {
		return false, nil
	}
	if to == "" {
		delete(b.texts, id)
		return true, nil
	}
	b.texts[id] = to
	if len(b.texts) > Max {
		delete(b.texts, slices.Min(slices.Collect(maps.Keys(b.texts))))
	}
	return true, nil
}

func (b *memoryLog) all(context.Context) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.texts), nil
}

//go:embed action_log.lua
var source string

var script = redisscript.New(source) // never sent twice

// keptFor is how long the list is kept after the last action: every key in Redis expires.
const keptFor = 90 * 24 * time.Hour

// redisLog keeps actions in a hash, for all instances with the same prefix.
type redisLog struct {
	client redis.UniversalClient
	key    string
	most   int       // actions
	box    *seal.Box // nil: texts are clear
}

func newRedisLog(store *redisstore.Store, box *seal.Box) *redisLog {
	client, prefix := store.Client(), store.Prefix()
	return &redisLog{client, prefix + "{@console}:@" + box.Mark() + "acts", Max, box}
}

func (b *redisLog) swap(ctx context.Context, id, from, to string) (bool, error) {
	numbers, err := script.Run(ctx, b.client, []string{b.key},
		[]any{id, b.box.Seal(from), b.box.Seal(to), b.most, keptFor.Milliseconds()})
	if err != nil {
		return false, redisscript.Explain("actions: write", err, nil)
	}
	return len(numbers) == 1 && numbers[0] == 1, nil
}

func (b *redisLog) all(ctx context.Context) (map[string]string, error) {
	texts, err := b.client.HGetAll(ctx, b.key).Result()
	if err != nil {
		return nil, redisscript.Explain("actions: read", err, nil)
	}
	for id, sealed := range texts {
		texts[id], _ = b.box.Open(sealed) // what was not sealed is left out, as of another version
	}
	return texts, nil
}
