package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// The sizes of the key and of a signature, in bytes.
const (
	idKeySize     = 32
	signatureSize = 16
)

// The key expires in Redis after idKeyLife, unless an instance extends its life. Instances do so at
// their start and every IDKeyInterval.
const (
	idKeyLife     = 30 * 24 * time.Hour
	IDKeyInterval = 24 * time.Hour
	idKeyTimeout  = time.Second
)

// idKey signs ids with a random key. Instances that share a Redis share it, and each keeps a copy,
// so that no id needs a round trip. In memory, it is the key of this process.
type idKey struct {
	client redis.UniversalClient // nil in memory
	name   string                // of the key in Redis
	secret atomic.Pointer[[]byte]
}

func newIDKey(store *redisstore.Store) *idKey {
	secret := make([]byte, idKeySize)
	_, _ = rand.Read(secret) // never fails
	k := &idKey{}
	k.secret.Store(&secret)
	if store != nil {
		client, prefix := store.Client(), store.Prefix()
		k.client, k.name = client, prefix+"{@ids}:@key" // no limit and no permit has such a key
	}
	return k
}

// sign returns the signature of text.
func (k *idKey) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, *k.secret.Load())
	mac.Write(text)
	return mac.Sum(nil)[:signatureSize]
}

// share puts the key into Redis if there is none, prolongs its life, and uses the one in Redis.
func (k *idKey) share(ctx context.Context) error {
	if k.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, idKeyTimeout)
	defer cancel()
	if err := k.client.SetNX(ctx, k.name, *k.secret.Load(), idKeyLife).Err(); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	if err := k.client.PExpire(ctx, k.name, idKeyLife).Err(); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	return k.read(ctx)
}

// read uses the key that is in Redis. If Redis has lost it, the current one stays in use.
func (k *idKey) read(ctx context.Context) error {
	if k.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, idKeyTimeout)
	defer cancel()
	secret, err := k.client.Get(ctx, k.name).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", k.name, err)
	case len(secret) != idKeySize:
		return fmt.Errorf("%s: has %d bytes; want %d, or delete the key in Redis",
			k.name, len(secret), idKeySize)
	}
	k.secret.Store(&secret)
	return nil
}

// ShareKey makes the key that signs ids the one that all instances with the same Redis use. Call it
// before the first request, and every [IDKeyInterval].
func (h *Handler) ShareKey(ctx context.Context) error { return h.ids.share(ctx) }
