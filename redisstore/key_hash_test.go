package redisstore_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
)

// hashedStore returns a store with hashed keys, and the hash of a key under its secret.
func hashedStore(t *testing.T, secret string) (*redisstore.Store, func(key string) string) {
	t.Helper()
	s := newStore(t, newClient(t))
	if err := s.HashKeys([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	return s, func(key string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(key))
		return "hash:" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
	}
}

// A store with hashed keys decides as every store does. The scripts are those of TestSingle: only
// the names of keys differ.
func TestHashedKeysDecideAsAll(t *testing.T) {
	s, _ := hashedStore(t, "0123456789abcdef")
	limittest.Vectors(t, s)
}

// Redis has the documented hash of a key, for limits and permits. The key and its hash are the same
// state, and a new secret is another one.
func TestHashedKeys(t *testing.T) {
	s, hashOf := hashedStore(t, "0123456789abcdef")
	l := parse(t, "10/h")
	for _, key := range []string{
		"", "user:42", "}{%", "hash:not", "hash:" + strings.Repeat("A", 20) + "\r\n",
		"hash:" + strings.Repeat("A", 21) + "B", // no hash ends with these bits
		strings.Repeat("x", 500),
	} {
		take(t, s, headgate.Request{Key: key, Limit: l, Cost: 3})
		if stored := s.StoredKey(key); stored != hashOf(key) {
			t.Errorf("%q is stored as %q; want %q", key, stored, hashOf(key))
		}
		if d := take(t, s, headgate.Request{Key: hashOf(key), Limit: l}); d.Remaining != 7 {
			t.Errorf("%q by its hash: %+v", key, d)
		}
		if found := scan(t, s, hashOf(key)); len(found) != 1 || found[0].Key != hashOf(key) {
			t.Errorf("%q is listed as %+v", key, found)
		}
	}
	r := concurrency.Request{Key: "user:42", Limit: 5, TTL: time.Hour}
	r.ID[0] = 1
	if d, err := s.AcquirePermit(t.Context(), r); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
	names, err := s.Client().Keys(t.Context(), s.Prefix()+"*").Result()
	if err != nil || len(names) != 8 {
		t.Errorf("Redis has %q, %v", names, err)
	}
	for _, name := range names {
		if strings.Contains(name, "user:42") || !strings.Contains(name, "{hash:") {
			t.Errorf("Redis has %q", name)
		}
	}
	if err := s.Reset(t.Context(), "user:42", l); err != nil {
		t.Fatal(err)
	}
	if d := take(t, s, headgate.Request{Key: "user:42", Limit: l}); d.Remaining != 10 {
		t.Errorf("after a reset: %+v", d)
	}
	if err := s.HashKeys([]byte("another secret of 26 bytes")); err != nil {
		t.Fatal(err)
	}
	if d := take(t, s, headgate.Request{Key: "}{%", Limit: l}); d.Remaining != 10 {
		t.Errorf("with a new secret: %+v", d)
	}
	err = s.HashKeys([]byte("15 bytes of it."))
	if e, ok := errors.AsType[*headgate.InvalidError](err); !ok || e.Field != "key secret" {
		t.Errorf("a short secret: %v", err)
	}
}
