// Package seal encrypts data that instances share in Redis and that contains clear keys. Such keys
// cannot be hashed, because all instances must read them.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// Box encrypts texts with AES-256-GCM. Its keys are derived from a secret. A nil Box returns texts
// unchanged. A Box is safe for concurrent use.
type Box struct {
	aead   cipher.AEAD
	nonces []byte // the HMAC key that derives nonces
	mark   string
}

// New returns a Box for secret, or nil if secret is empty.
func New(secret string) *Box {
	if secret == "" {
		return nil
	}
	derive := func(use string) []byte {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "headgate seal "+use, sha256.Size)
		if err != nil {
			panic(err) // cannot happen: the length is valid
		}
		return key
	}
	block, err := aes.NewCipher(derive("key"))
	if err != nil {
		panic(err) // cannot happen: the key has 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // cannot happen: AES has blocks of 16 bytes
	}
	mark := base64.RawURLEncoding.EncodeToString(derive("mark")[:6])
	return &Box{aead: aead, nonces: derive("nonce"), mark: mark + ":"}
}

// Mark returns a prefix for names of keys in Redis. It depends on the secret, so that instances
// with different secrets do not read each other's sealed texts.
func (b *Box) Mark() string {
	if b == nil {
		return ""
	}
	return b.mark
}

// Seal encrypts text. Equal texts have equal results, because Redis compares them. Seal returns an
// empty text unchanged.
func (b *Box) Seal(text string) string {
	if b == nil || text == "" {
		return text
	}
	mac := hmac.New(sha256.New, b.nonces)
	mac.Write([]byte(text))
	nonce := mac.Sum(nil)[:b.aead.NonceSize()]
	return string(b.aead.Seal(nonce, nonce, []byte(text), nil))
}

var errNotSealed = errors.New("seal: the text was not sealed with this secret")

// Open decrypts what Seal returned.
func (b *Box) Open(sealed string) (string, error) {
	if b == nil || sealed == "" {
		return sealed, nil
	}
	size := b.aead.NonceSize()
	if len(sealed) < size {
		return "", errNotSealed
	}
	text, err := b.aead.Open(nil, []byte(sealed[:size]), []byte(sealed[size:]), nil)
	if err != nil {
		return "", errNotSealed
	}
	return string(text), nil
}
