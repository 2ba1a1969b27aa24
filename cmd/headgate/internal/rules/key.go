package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/cookie"
)

// The text of a key is that of its parts: SOURCE:VALUE, such as ip:192.0.2.1, ip:2001:db8::/64,
// header:abc or path:/login. Several parts are joined by |, and in their values % and | are written
// %25 and %7C, so that different parts always make different keys. A rule without parts has one
// key, "all".
//
// A missing header or cookie is an empty value: header: is a key like any other, which all such
// requests share. A value of more than 128 bytes is replaced by its hash, so that clients do not
// choose the size of keys in the store. So is a value that is not UTF-8: then JSON
// and files can name every key.

// KeyOfAll is the key of a rule without parts.
const KeyOfAll = "all"

const (
	maxValue = 128
	hashMark = "sha256:"
)

// key returns the key of q under r.
func (r *rule) key(q *target) string {
	if len(r.Key) == 0 {
		return KeyOfAll
	}
	var room [160]byte
	b := room[:0]
	for i, p := range r.Key {
		if i > 0 {
			b = append(b, '|')
		}
		b = append(append(b, p.Source...), ':')
		if p.Source == "ip" {
			b = appendAddress(b, q.Client, p.Bits)
			continue
		}
		b = appendValue(b, p.value(q), len(r.Key) > 1)
	}
	return string(b)
}

// value returns what q has at p.
func (p KeyPart) value(q *target) string {
	switch p.Source {
	case "header":
		if p.Name == "Host" { // which net/http does not keep in Header
			return q.host
		}
		// The first one, as most servers take it. If all counted, a client could add another to
		// a key that its server accepts, and have a new budget.
		return q.Header.Get(p.Name)
	case "cookie":
		return cookie.Value(q.Header["Cookie"], p.Name)
	case "path":
		return q.path
	case "host":
		return q.host
	case "method":
		return cleanMethod(q.method)
	case "body":
		return q.Model
	}
	return p.Name // const
}

// byModel reports whether the key of r is known only with the body of a request.
func (r *rule) byModel() bool {
	return slices.ContainsFunc(r.Key, func(p KeyPart) bool { return p.Source == "body" })
}

// appendAddress appends an address, or its network if that has fewer bits.
func appendAddress(b []byte, at netip.Addr, bits int) []byte {
	if !at.IsValid() {
		return append(b, "unknown"...)
	}
	at = at.Unmap().WithZone("")
	if bits == 0 {
		bits = 64
	}
	if at.Is4() || bits >= at.BitLen() {
		return at.AppendTo(b)
	}
	p, _ := at.Prefix(bits) // fits, by the line above
	return p.AppendTo(b)
}

// appendValue appends a value that a client may have chosen.
func appendValue(b []byte, value string, joined bool) []byte {
	if len(value) > maxValue || strings.HasPrefix(value, hashMark) || !utf8.ValidString(value) {
		sum := sha256.Sum256([]byte(value))
		return hex.AppendEncode(append(b, hashMark...), sum[:])
	}
	if joined {
		value = escapes.Replace(value)
	}
	return append(b, value...)
}

var escapes = strings.NewReplacer("%", "%25", "|", "%7C")
