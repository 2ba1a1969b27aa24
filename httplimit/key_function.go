package httplimit

import (
	"net/textproto"
	"path"
	"strings"

	"github.com/headgate/headgate/internal/keytext"
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
// "header:VALUE", as in a rule of headgate serve, also in the function of NewLimiterFunc. To choose
// plans by the bare value, write a KeyFunc of your own, as examples/plans does, or put the plan in
// the context. Values of two fields can be equal: if a store has a limit for each field, name the
// limits (see headgate.Limit.Named).
//
// Of several values, the key is the first one. In a field such as Authorization, "Bearer" and
// "bearer" make the same key, and so do one space and several.
func Header(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case name == "Host": // which net/http does not keep in Header
		return func(r Request) string { return tagged("header:", keytext.Host(r.Host())) }
	case keytext.IsCredential(name):
		return func(r Request) string {
			return tagged("header:", keytext.Credential(first(r, name)))
		}
	}
	return func(r Request) string { return tagged("header:", first(r, name)) }
}

// first returns the first value of a field, and "" if there is none.
func first(r Request, name string) string {
	if values := r.Field(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Cookie makes keys from the cookie of that name, even from one whose value net/http rejects. The
// key is "cookie:VALUE". Spellings that a server may take for the same cookie make the same key:
// quotes, spaces around the value, and percent escapes. All requests with several different cookies
// of the name share one key. As with [Header], use it for values that were verified.
func Cookie(name string) KeyFunc {
	return func(r Request) string {
		return tagged("cookie:", keytext.Cookie(r.Field("Cookie"), name))
	}
}

// Path makes keys from the cleaned path of the URL (see path.Clean). A client gets a fresh budget
// with each path that it invents. Inside a ServeMux, a function that returns r.Pattern makes only
// as many keys as there are patterns.
func Path() KeyFunc {
	return func(r Request) string { return tagged("path:", path.Clean("/"+r.Path())) }
}

// Join makes one key from several, such as an address and a path: "ip:192.0.2.1|path:/login".
// Different lists of parts always make different keys.
func Join(keys ...KeyFunc) KeyFunc {
	return func(r Request) string {
		var b strings.Builder
		for i, key := range keys {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(keytext.Escape(key(r)))
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

// tagged returns the key of a value.
func tagged(tag, value string) string {
	if value == "" {
		return ""
	}
	return string(keytext.Append([]byte(tag), value, false))
}
