package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/textproto"
	"path"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/cookie"
)

// KeyFunc returns the key of a request of any server; [Key] adapts it to net/http. Requests of
// equal keys share their limits.
//
// The functions of this package begin each key with its kind, so that the value of a header cannot
// be mistaken for an address. For a request without the header, cookie or address, they return "".
// That is a key like any other, so all such requests share it; see [FirstOf].
type KeyFunc func(Request) string

// Header makes keys from the value of a header field, such as an API key. A client that may send
// any value gets a fresh budget with each, so use it for values that were verified. The key is
// "header:NAME:=VALUE", also in the function of NewLimiterFunc. To choose plans by the bare value,
// write a KeyFunc of your own, as examples/plans does, or put the plan into the context.
func Header(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	tag := "header:" + name + ":"
	if name == "Host" { // which net/http does not keep in Header
		return func(r Request) string { return tagged(tag, r.Host()) }
	}
	return func(r Request) string { return tagged(tag, strings.Join(r.Field(name), ",")) }
}

// Cookie makes keys from the first cookie of that name, even from one whose value net/http rejects.
// As with [Header], use it for values that were verified.
func Cookie(name string) KeyFunc {
	tag := "cookie:" + name + ":"
	return func(r Request) string { return tagged(tag, cookie.Value(r.Field("Cookie"), name)) }
}

// Path makes keys from the cleaned path of the URL (see path.Clean). A client gets a fresh budget
// with each path that it invents. Inside a ServeMux, a function that returns r.Pattern makes only
// as many keys as there are patterns.
func Path() KeyFunc {
	return func(r Request) string { return tagged("path:", path.Clean("/"+r.Path())) }
}

// Join makes one key from several, such as an address and a path. Different lists of parts
// always make different keys.
func Join(keys ...KeyFunc) KeyFunc {
	return func(r Request) string {
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

// FirstOf returns the first key that is not "". For example, it uses the API key, and the address
// for clients without an API key.
func FirstOf(keys ...KeyFunc) KeyFunc {
	return func(r Request) string {
		for _, key := range keys {
			if k := key(r); k != "" {
				return k
			}
		}
		return ""
	}
}

// maxValue is the longest value that a key holds as it is. A longer one is replaced by its
// hash, so that clients do not choose the size of keys in the store.
const maxValue = 128

// tagged returns the key of a value.
func tagged(tag, value string) string {
	if value == "" {
		return ""
	}
	if len(value) > maxValue {
		sum := sha256.Sum256([]byte(value))
		return tag + "sha256:" + hex.EncodeToString(sum[:])
	}
	return tag + "=" + value
}
