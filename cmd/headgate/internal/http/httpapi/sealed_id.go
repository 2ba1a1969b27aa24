package httpapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/internal/problem"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// An id names a reservation or a permit. It holds what the server must know to end it, so that no
// server has to remember it and any instance can do it. The id of a reservation is signed, because
// a forged one would be a refund. That of a permit is not: it has 128 random bits, without which
// nobody can change the permit.

// reservation is what the id of a reservation holds.
type reservation struct {
	Rule   string  `json:"r,omitempty"`
	Limit  string  `json:"l,omitempty"` // inline
	Key    string  `json:"k"`
	Cost   int64   `json:"n"`           // that was charged
	Starts []int64 `json:"s,omitempty"` // of each limit, if known: Unix microseconds
}

// permit is what the id of a permit holds.
type permit struct {
	Rule string `json:"r"`
	Key  string `json:"k"`
	ID   string `json:"i"`
}

// idKind is a kind of ids.
type idKind struct {
	mark   string // begins the ids
	signed bool
	want   string // in errors
}

var (
	reservationID = idKind{"r1.", true, "an id that /v1/reserve returned"}
	permitID      = idKind{"p1.", false, "an id that /v1/acquire returned"}
)

const maxID = 8*MaxKey + 4096 // a control character has 6 bytes in JSON, then 8 in base64

// encoding refuses ids whose unused bits were changed.
var encoding = base64.RawURLEncoding.Strict()

// seal returns the id of v.
func (k *idKey) seal(kind idKind, v any) string {
	text := idText(v)
	if kind.signed {
		text = append(text, k.sign(text)...)
	}
	return kind.mark + encoding.EncodeToString(text)
}

func idText(v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // the id would be longer
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen: texts and numbers
	}
	return bytes.TrimSpace(text.Bytes())
}

// unseal reads an id that seal made, also on another instance.
func (k *idKey) unseal(ctx context.Context, id string, kind idKind, v any) error {
	if id == "" {
		return problem.BadField("id", "missing", kind.want)
	}
	encoded, ok := strings.CutPrefix(id, kind.mark)
	text, err := encoding.DecodeString(encoded)
	ok = ok && err == nil
	if ok && kind.signed {
		if text, err = k.verified(ctx, text); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if ok = ok && d.Decode(v) == nil; ok {
		_, err = d.Token()
	}
	if !ok || !errors.Is(err, io.EOF) {
		return problem.BadField("id", jsonbody.Shorten([]byte(jsonbody.Quote(id))), kind.want)
	}
	return nil
}

// verified returns the text that comes before its signature.
func (k *idKey) verified(ctx context.Context, signed []byte) (text []byte, err error) {
	end := max(0, len(signed)-signatureSize)
	text, signature := signed[:end], signed[end:]
	if hmac.Equal(signature, k.sign(text)) {
		return text, nil
	}
	if err := k.read(ctx); err != nil { // another instance may have replaced it
		return nil, err
	}
	if !hmac.Equal(signature, k.sign(text)) {
		return nil, problem.BadField("id", "not signed with the key of these instances",
			reservationID.want)
	}
	return text, nil
}

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
