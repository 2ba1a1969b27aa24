package overrides

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

//go:embed change.lua
var changeText string

//go:embed news.lua
var newsText string

var (
	changeScript = redisscript.New(changeText) // never sent twice: the first may have changed it
	newsScript   = redisscript.New(newsText)
)

// NewRedis returns a table that is kept in the Redis of store, and shared by all instances with
// the same prefix and box, which seals entries; nil: they are clear. report, which may be nil, gets
// bad entries and the errors of [Table.Run]: the first of a series.
func NewRedis(store *redisstore.Store, box *seal.Box, report func(error)) *Table {
	// No limit and no permit has such a key. The braces keep both on one server of a Cluster.
	hash := store.Prefix() + "{@overrides}:@" + box.Mark()
	t := newTable(&redisKeeper{
		client: store.Client(), keys: []string{hash + "hash", hash + "version", hash + "changes"},
		sealed: newSealedFields(store, box),
	})
	if report != nil {
		t.report = report
	}
	return t
}

// redisKeeper keeps overrides in a hash, beside its version and the names of what changed last.
type redisKeeper struct {
	client redis.UniversalClient
	keys   []string // the hash, the version, the names
	sealed *sealedFields
}

func (k *redisKeeper) news(ctx context.Context, known string, also Also) (n news, err error) {
	p := k.client.Pipeline()
	get := p.Get(ctx, k.keys[1])
	after := func() {}
	if also != nil {
		after = also(ctx, p)
	}
	_, _ = p.Exec(ctx) // each command has its own error
	after()
	version, err := get.Result()
	if errors.Is(err, redis.Nil) {
		err = nil // never put, all have expired, or Redis has lost it
	}
	if err != nil || version == known {
		return news{version: known}, err
	}
	texts, err := newsScript.Texts(ctx, k.client, k.keys, []any{known})
	if err != nil {
		return n, err
	}
	if len(texts) < 2 {
		return n, fmt.Errorf("the script returned %d texts; want at least 2", len(texts))
	}
	n.version, n.all, n.fields = texts[0], texts[1] == "all", map[string]string{}
	if n.all {
		k.sealed.forget()
	}
	for i := 2; i+1 < len(texts); i += 2 {
		name, value := k.sealed.open(texts[i], texts[i+1])
		n.fields[name] = value
	}
	return n, nil
}

func (k *redisKeeper) change(ctx context.Context, c change) (outcome, error) {
	ttl := c.ttl.Milliseconds()
	if c.ttl > 0 {
		ttl++ // rounded up: 0 is without end
	}
	args := []any{
		k.sealed.name(c.field), k.sealed.value(c.value), ttl, c.max, k.sealed.value(c.from),
		rand.Text(),
	}
	for i := 0; i < len(c.expired); i += 2 {
		args = append(args, k.sealed.name(c.expired[i]), k.sealed.value(c.expired[i+1]))
	}
	numbers, err := changeScript.Run(ctx, k.client, k.keys, args)
	if err != nil {
		return unchanged, err
	}
	if len(numbers) != 1 {
		return unchanged, fmt.Errorf("the script returned %d numbers; want 1", len(numbers))
	}
	return outcome(numbers[0]), nil
}
