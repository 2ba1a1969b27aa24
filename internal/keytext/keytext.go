// Package keytext brings what a request has, such as a credential, into the form that keys have.
//
// Services take many spellings for one credential: Bearer and bearer, a cookie in quotes. If each
// made a key, a client would have as many budgets as spellings, and a ban would stop one of them.
package keytext

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsCredential reports whether the values of a field, or of several joined by |, have the syntax of
// Authorization.
func IsCredential(field string) bool { return strings.Contains(field, "Authorization") }

// Credential returns a value of Authorization with its scheme in lower case, and one space after
// it. A value without a scheme keeps its case: it may be a token.
func Credential(value string) string {
	value = trim(value)
	scheme, rest := cutSpace(value)
	if rest == "" {
		return value
	}
	return strings.ToLower(scheme) + " " + rest
}

// Several is the value of several different cookies or parameters of one name. Some services read
// the first one, and some the last.
const Several = "several"

// Cookie returns the value of the cookie of that name in the lines of the field Cookie, by
// [CookieValue], or [Several]. It is "" if there is none. It also reads cookies that net/http
// drops, such as {"a":1}: their owners would share a key with all clients without one.
func Cookie(lines []string, name string) string {
	found, result := false, ""
	for _, line := range lines {
		for pairs := range strings.SplitSeq(line, ";") {
			pairs = trim(pairs)
			for at := 0; ; at += len(name) {
				i := strings.Index(pairs[at:], name)
				if i < 0 {
					break
				}
				at += i
				value, given := strings.CutPrefix(trim(pairs[at+len(name):]), "=")
				if !given || !isStart(pairs, at) {
					continue
				}
				value = CookieValue(value)
				if found && value != result {
					return Several
				}
				found, result = true, value
			}
		}
	}
	return result
}

// isStart reports whether a cookie may begin at s[at:]. To Python's http.cookies, one may after a
// space.
func isStart(s string, at int) bool {
	if at == 0 {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(s[:at])
	return isSpace(r, s[at-1])
}

// CookieValue returns the value of a cookie as the services that decode most would read it: without
// spaces around it, percent escapes, quotes, and escapes in quotes.
func CookieValue(value string) string {
	value = trim(value)
	// To Python's http.cookies, a space ends a value that is not in quotes.
	if !strings.HasPrefix(value, `"`) {
		value, _ = cutSpace(value)
	}
	for i := 1; i < len(value); i++ { // to the first end: values are found in linear time
		if value[i-1] == '"' && (value[i] == ' ' || value[i] == '\t') {
			value = value[:i]
		}
	}
	value = PercentDecoded(value)
	if !strings.HasPrefix(value, `"`) {
		return value
	}
	// Older versions of the cookie parser of Express drop the last byte, whether or not it is a
	// quote.
	return PercentDecoded(withoutEscapes(value[1:max(1, len(value)-1)]))
}

// Parameter returns the value of the parameter of that name in a query, by [ParameterValue], or
// [Several]. It is "" if there is none. Some services do not distinguish the case of names, some
// separate parameters by semicolons, too, and most end a query at #.
func Parameter(query, name string) string {
	found, result := false, ""
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(spellings.Replace(query), "&") {
		given, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(ParameterValue(given), name) {
			continue
		}
		value = ParameterValue(value)
		if found && value != result {
			return Several
		}
		found, result = true, value
	}
	return result
}

var spellings = strings.NewReplacer("+", " ", ";", "&")

// ParameterValue returns a value of a query without spaces around it and percent escapes.
func ParameterValue(value string) string { return trim(PercentDecoded(value)) }

// PercentDecoded decodes escapes until none is left, so that the text of a key has one form.
func PercentDecoded(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		b = append(b, s[i])
		for n := len(b) - 3; n >= 0 && b[n] == '%'; n = len(b) - 3 {
			if _, err := hex.Decode(b[n:n+1], b[n+1:]); err != nil {
				break
			}
			b = b[:n+1]
		}
	}
	return string(b)
}

// withoutEscapes decodes \" and \042.
func withoutEscapes(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b = append(b, s[i])
		case i+3 < len(s) && s[i+1] <= '3' && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]):
			b = append(b, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
		default:
			i++
			b = append(b, s[i])
		}
	}
	return string(b)
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }

// isSpace reports whether r, which begins with b, is a space to a service that reads fields as
// UTF-8, or to one that reads them as Latin-1.
func isSpace(r rune, b byte) bool {
	return unicode.IsSpace(r) || r == utf8.RuneError && (b == 0x85 || b == 0xA0)
}

// trim returns s without spaces around it.
func trim(s string) string {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if !isSpace(r, s[0]) {
			break
		}
		s = s[n:]
	}
	for s != "" {
		r, n := utf8.DecodeLastRuneInString(s)
		if !isSpace(r, s[len(s)-1]) {
			break
		}
		s = s[:len(s)-n]
	}
	return s
}

// cutSpace returns what is before the first spaces of s, and what is after them.
func cutSpace(s string) (before, after string) {
	for i, r := range s {
		if isSpace(r, s[i]) {
			return s[:i], trim(s[i:])
		}
	}
	return s, ""
}

// Host returns the name in a Host field: lower case, without port, brackets and final dot. An IPv6
// address may have no brackets.
func Host(host string) string {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

const (
	maxValue = 128
	hashMark = "sha256:"
)

// Append appends a value that a client may have chosen to a key. A value of more than 128 bytes is
// replaced by its hash, so that clients do not choose the size of keys in the store. So is a value
// that is not UTF-8: then JSON and files can name every key. In a key of several parts, which are
// joined by |, the characters % and | are escaped.
func Append(key []byte, value string, joined bool) []byte {
	if len(value) > maxValue || strings.HasPrefix(value, hashMark) || !utf8.ValidString(value) {
		sum := sha256.Sum256([]byte(value))
		return hex.AppendEncode(append(key, hashMark...), sum[:])
	}
	if joined {
		value = Escape(value)
	}
	return append(key, value...)
}

// Escape escapes % and |.
func Escape(part string) string { return escapes.Replace(part) }

// Unescape is the inverse of [Escape].
func Unescape(part string) string { return unescapes.Replace(part) }

var (
	escapes   = strings.NewReplacer("%", "%25", "|", "%7C")
	unescapes = strings.NewReplacer("%25", "%", "%7C", "|")
)

// IsHash reports whether text is what [Append] writes in place of a value.
func IsHash(text string) bool {
	digits, found := strings.CutPrefix(text, hashMark)
	return found && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}
