package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/keytext"
)

// The text of a key is that of its parts: SOURCE:VALUE, such as ip:192.0.2.1, ip:2001:db8::/64,
// header:abc or path:/login. Several parts are joined by |, and in their values % and | are written
// %25 and %7C, so that different parts always make different keys. A rule without parts has one
// key, "all".
//
// A missing header or cookie is an empty value: header: is a key like any other, which all such
// requests share. Package keytext has the form of values.

// KeyOfAll is the key of a rule without parts.
const KeyOfAll = "all"

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
			b = p.appendAddress(b, q.Client)
			continue
		}
		b = keytext.Append(b, p.value(q), len(r.Key) > 1)
	}
	return string(b)
}

// value returns what q has at p.
func (p KeyPart) value(q *target) string {
	switch p.Source {
	case "header":
		return p.form(p.field(q))
	case "cookie":
		return keytext.Cookie(q.Header["Cookie"], p.Name)
	case "query":
		return keytext.Parameter(q.Query, p.Name)
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

// field returns the first field of p that q has. Of several values, it is the first one, as most
// servers take it. If all counted, a client could add another to a key that its server accepts, and
// have a new budget.
func (p KeyPart) field(q *target) string {
	for more := p.Name; more != ""; {
		var name string
		if name, more, _ = strings.Cut(more, "|"); name == "Host" { // not in Header of net/http
			return q.host
		}
		if lines := q.Header[name]; len(lines) > 0 && lines[0] != "" {
			return lines[0]
		}
	}
	return ""
}

// form returns a value as keys have it. It leaves the value of a key as it is.
func (p KeyPart) form(value string) string {
	switch {
	case p.Source == "header" && keytext.IsCredential(p.Name):
		return keytext.Credential(value)
	case p.Source == "cookie":
		return keytext.PercentDecoded(value) // some cookie has any other text: a%20b has "a b"
	case p.Source == "query":
		return keytext.ParameterValue(value)
	case p.Source == "path":
		value, _ = cleanPath(value)
	case p.Source == "host" || p.Source == "header" && p.Name == "Host":
		return keytext.Host(value)
	case p.Source == "method":
		return cleanMethod(value)
	case p.Source == "const":
		return p.Name
	}
	return value
}

// appendAddress appends an address, or its network if that has fewer bits.
func (p KeyPart) appendAddress(b []byte, at netip.Addr) []byte {
	if !at.IsValid() {
		return append(b, "unknown"...)
	}
	at = at.Unmap().WithZone("")
	bits := cmp.Or(p.Bits, 64)
	if at.Is4() {
		bits = cmp.Or(p.Bits4, 32)
	}
	if bits >= at.BitLen() {
		return at.AppendTo(b)
	}
	network, _ := at.Prefix(bits) // fits, by the line above
	return network.AppendTo(b)
}
