package redisstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"sync"
)

// MinKeySecret is the least length of the secret of [Store.HashKeys], in bytes.
const MinKeySecret = 16

// hashMark begins keys that are hashes, and hashSize is their length in bytes.
const (
	hashMark = "hash:"
	hashSize = 16
)

// HashKeys makes the store write a keyed hash to Redis instead of each key: "hash:" and the first
// 128 bits of its HMAC-SHA256 under secret, in base64url. A key that already has this form is not
// hashed again, so keys from [Store.Scan] can be used as keys. Names of limits are not hashed.
//
// Call it before any other use of s. With another secret, all keys start with new state. It returns
// a headgate.InvalidError if secret has less than [MinKeySecret] bytes.
func (s *Store) HashKeys(secret []byte) error {
	if len(secret) < MinKeySecret {
		return invalid("key secret", strconv.Itoa(len(secret))+" bytes long",
			"at least "+strconv.Itoa(MinKeySecret)+" random bytes")
	}
	h := &keyHash{}
	h.macs.New = func() any { return hmac.New(sha256.New, secret) }
	s.hash = h
	return nil
}

// StoredKey returns key as it is in Redis: its hash after [Store.HashKeys], otherwise key. In place
// of a key of more than 1 KiB, Redis has "sha256:" and its SHA-256 in hexadecimal digits, so that
// clients do not choose how much memory their keys take.
func (s *Store) StoredKey(key string) string {
	if s.hash != nil {
		return s.hash.of(key)
	}
	if len(key) > maxKey {
		sum := sha256.Sum256([]byte(key))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return key
}

// maxKey is the length of the longest key that Redis has as it is.
const maxKey = 1024

// keyHash hashes keys.
type keyHash struct{ macs sync.Pool }

func (h *keyHash) of(key string) string {
	if IsHash(key) {
		return key
	}
	mac, _ := h.macs.Get().(hash.Hash)
	defer h.macs.Put(mac)
	mac.Reset()
	mac.Write([]byte(key))
	var room [sha256.Size]byte
	return hashMark + base64.RawURLEncoding.EncodeToString(mac.Sum(room[:0])[:hashSize])
}

// IsHash reports whether key has the form of the hashes of [Store.HashKeys].
func IsHash(key string) bool {
	text, marked := strings.CutPrefix(key, hashMark)
	if !marked || len(text) != base64.RawURLEncoding.EncodedLen(hashSize) {
		return false
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text) // which skips line ends
	return err == nil && len(sum) == hashSize
}
