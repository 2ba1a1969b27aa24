package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// KeyFunc says who a request counts against: requests of equal keys share their
// limits. The functions of this package begin each key with what it is made of, so
// that a header cannot pass for an address, and give "" to a request that lacks it.
// "" is a key like any other, which such requests share; see [FirstOf].
type KeyFunc func(*http.Request) string

// Header makes the key of a header field's value, such as an API key. Whoever can
// send any value gets a fresh budget for each, so use it for values that were checked.
func Header(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	tag := "header:" + name + ":"
	return func(r *http.Request) string { return tagged(tag, strings.Join(r.Header[name], ",")) }
}

// Cookie makes the key of a cookie's value. As with [Header], use it for values that
// were checked.
func Cookie(name string) KeyFunc {
	tag := "cookie:" + name + ":"
	return func(r *http.Request) string {
		c, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return tagged(tag, c.Value)
	}
}

// Path makes the key of the path of the URL, without dots and doubled slashes.
func Path() KeyFunc {
	return func(r *http.Request) string { return tagged("path:", path.Clean("/"+r.URL.Path)) }
}

// Method makes the key of the method.
func Method() KeyFunc {
	return func(r *http.Request) string { return tagged("method:", r.Method) }
}

// Join makes one key of several, such as an address and a path. Parts are told apart
// whatever they hold: no two different lists of parts make the same key.
func Join(keys ...KeyFunc) KeyFunc {
	return func(r *http.Request) string {
		var b strings.Builder
		for _, key := range keys {
			part := key(r)
			b.WriteString(strconv.Itoa(len(part)))
			b.WriteByte(' ')
			b.WriteString(part)
		}
		return b.String()
	}
}

// FirstOf makes the key by the first function that gives one, such as an API key or
// else the client's address.
func FirstOf(keys ...KeyFunc) KeyFunc {
	return func(r *http.Request) string {
		for _, key := range keys {
			if k := key(r); k != "" {
				return k
			}
		}
		return ""
	}
}

// longest is the length from which a value is replaced by its hash, so that clients
// do not choose how much a key takes in the store.
const longest = 128

// tagged is the key of a value.
func tagged(tag, value string) string {
	if value == "" {
		return ""
	}
	if len(value) > longest {
		sum := sha256.Sum256([]byte(value))
		return tag + "sha256:" + hex.EncodeToString(sum[:])
	}
	return tag + "=" + value
}
