package overrides

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/internal/redisscript"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

//go:embed change.lua
var changeText string

//go:embed news.lua
var newsText string

//go:embed lost.lua
var lostText string

var (
	changeScript = redisscript.New(changeText) // never sent twice: the first may have changed it
	newsScript   = redisscript.New(newsText)
	lostScript   = redisscript.New(lostText)
)

// NewRedis returns a table that is kept in the Redis of store, and shared by all instances with
// the same prefix and box, which seals entries; nil: they are clear. report, which may be nil, gets
// bad entries and the errors of [Table.Run]: the first of a series.
func NewRedis(store *redisstore.Store, box *seal.Box, report func(error)) *Table {
	// No limit and no permit has such a key. The braces keep both on one server of a Cluster.
	hash := store.Prefix() + "{@overrides}:@" + box.Mark()
	t := newTable(&redisKeeper{
		client: store.Client(), keys: []string{hash + "hash", hash + "version", hash + "changes"},
		lostKey: hash + "lost", sealed: newSealedFields(store, box),
	})
	if report != nil {
		t.report = report
	}
	return t
}

// redisKeeper keeps overrides in a hash, beside its version and the names of what changed last.
type redisKeeper struct {
	client  redis.UniversalClient
	keys    []string // the hash, the version, the names
	lostKey string   // a hash of lost entries
	sealed  *sealedFields
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
	keys := append(slices.Clip(k.keys), k.lostKey)
	numbers, err := changeScript.Run(ctx, k.client, keys, args)
	if err != nil {
		return unchanged, err
	}
	if len(numbers) != 1 {
		return unchanged, fmt.Errorf("the script returned %d numbers; want 1", len(numbers))
	}
	return outcome(numbers[0]), nil
}

// lostAt is the field with the time of the last loss. No entry has such a name.
const lostAt = "@at"

func (k *redisKeeper) keepLost(ctx context.Context, l Lost) error {
	if len(l.Values) == 0 {
		return k.client.Del(ctx, k.lostKey).Err()
	}
	args := []any{lostFor.Milliseconds(), lostAt, l.At.UnixMilli()}
	for name, value := range l.Values {
		args = append(args, k.sealed.name(name), k.sealed.value(value))
	}
	_, err := lostScript.Run(ctx, k.client, []string{k.lostKey}, args)
	return err
}

func (k *redisKeeper) lost(ctx context.Context) (l Lost, err error) {
	texts, err := k.client.HGetAll(ctx, k.lostKey).Result()
	if err != nil {
		return l, redisscript.Explain("overrides: read", err, nil)
	}
	millis, _ := strconv.ParseInt(texts[lostAt], 10, 64)
	l = Lost{At: time.UnixMilli(millis), Values: map[string]string{}}
	for stored, sealed := range texts {
		if name, value := k.sealed.clear(stored, sealed); stored != lostAt && value != "" {
			l.Values[name] = value
		}
	}
	return l, nil
}
