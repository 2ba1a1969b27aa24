package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/keytext"
	"github.com/headgate/headgate/redisstore"
)

// KeyError says that a rule makes no such key, and what it makes.
type KeyError struct{ text string }

// Error is the text of e.
func (e *KeyError) Error() string { return e.text }

// CheckKey returns a [KeyError] if an override of r for key, in which * stands for any text,
// matches no key that r counts by.
func (r *Rule) CheckKey(key string) error {
	switch pattern := strings.Contains(key, "*"); {
	case len(r.Key) == 0 || r.AnyKey: // programs choose the keys
		if redisstore.IsHash(key) {
			return &KeyError{fmt.Sprintf("%q is the hash of a key; want the key itself", key)}
		}
		return nil
	case !pattern:
		return r.checkExactKey(key)
	}
	return r.checkPattern(key)
}

// checkPattern returns a [KeyError] if r does not make the texts in a pattern that begin parts of a
// key. A * may stand for several parts.
func (r *Rule) checkPattern(pattern string) error {
	texts, rest, skips := r.split(pattern), r.Key, false
	for n, text := range texts {
		literal, _, more := strings.Cut(text, "*")
		if !more && n == len(texts)-1 {
			rest = rest[max(len(rest)-1, 0):] // it ends the key
		}
		wrong := r.sample()
		i := slices.IndexFunc(rest, func(p KeyPart) bool {
			want, is := p.checkText(literal, more, len(r.Key) > 1)
			if want != "" {
				wrong = want
			}
			return is && want == ""
		})
		if i < 0 || i > 0 && !skips {
			return r.notMade(pattern, wrong)
		}
		rest, skips = rest[i+1:], skips || more
	}
	return nil
}

// checkText reports whether a text may begin p, and is check for it. If there is more, a * follows.
func (p KeyPart) checkText(text string, more, joined bool) (want string, is bool) {
	value, whole := strings.CutPrefix(text, p.Source+":")
	switch {
	case whole && more:
		return p.checkBeginning(value, joined), true
	case whole:
		return p.check(value, joined), true
	}
	return "", more && strings.HasPrefix(p.Source+":", text)
}

// checkBeginning is check for the text before a *.
func (p KeyPart) checkBeginning(text string, joined bool) (want string) {
	if joined {
		text = keytext.Unescape(text)
	}
	made := text
	switch {
	case p.Source == "ip" || p.Source == "host":
		made = strings.ToLower(text)
	case p.Source == "method" && !strings.HasPrefix(cleanMethod(""), text): // other
		made = strings.ToUpper(text)
	case p.Source == "cookie", p.Source == "const" && !strings.HasPrefix(p.Name, text):
		made = p.form(text)
	case p.Source == "query":
		made = strings.TrimSuffix(p.form(text+"x"), "x") // x as what * stands for
	case p.Source == "header" && keytext.IsCredential(p.Name):
		made = strings.TrimSuffix(p.form(text+"x"), "x") // x as what * stands for
		if lower := strings.ToLower(text); lower == "bearer" || lower == "basic" {
			made = lower
		}
	}
	if made == text {
		return ""
	}
	if joined {
		made = keytext.Escape(made)
	}
	return "a pattern such as " + strconv.Quote(p.Source+":"+made+"*")
}

// split returns the texts of the parts of a key of r, or of a pattern.
func (r *Rule) split(key string) []string {
	if len(r.Key) == 1 {
		return []string{key}
	}
	return strings.Split(key, "|")
}

// checkExactKey returns a [KeyError] if r, which has a key, does not make this one.
func (r *Rule) checkExactKey(key string) error {
	parts := r.split(key)
	if len(parts) != len(r.Key) {
		return r.notMade(key, r.sample())
	}
	for i, part := range parts {
		value, found := strings.CutPrefix(part, r.Key[i].Source+":")
		if !found {
			return r.notMade(key, r.sample())
		}
		if want := r.Key[i].check(value, len(parts) > 1); want != "" {
			return r.notMade(key, want)
		}
	}
	return nil
}

func (r *Rule) notMade(key, want string) error {
	return &KeyError{fmt.Sprintf("%q is not a key of rule %q; want %s", key, r.Name, want)}
}

// sample shows the form of the keys of r.
func (r *Rule) sample() string {
	parts := make([]string, len(r.Key))
	for i, p := range r.Key {
		parts[i] = p.Source + ":..."
	}
	return "one such as " + strconv.Quote(strings.Join(parts, "|"))
}

// check returns what is wanted instead of a value that no key has at p, and "" for others. In a key
// that is joined of several parts, values are escaped.
func (p KeyPart) check(value string, joined bool) (want string) {
	if p.Source == "ip" {
		return p.checkAddress(value)
	}
	_, err := netip.ParseAddr(value)
	if keytext.IsHash(value) || err == nil && (p.Source == "host" || p.Name == "Host") {
		return ""
	}
	plain := value
	if joined {
		plain = keytext.Unescape(value)
	}
	if made := string(keytext.Append(nil, p.form(plain), joined)); made != value {
		return strconv.Quote(p.Source + ":" + made)
	}
	return ""
}

func (p KeyPart) checkAddress(value string) (want string) {
	if value == "unknown" {
		return ""
	}
	text, _, isNetwork := strings.Cut(value, "/")
	at, err := netip.ParseAddr(text)
	if err != nil {
		return `"ip:" and an address, or a pattern with *`
	}
	counted := string(p.appendAddress(nil, at))
	if value == counted {
		return ""
	}
	if network, err := netip.ParsePrefix(value); isNetwork && err == nil && p.splits(network) {
		return `one override for each key in it, a pattern such as "ip:10.*", or a rule with ` +
			"match: {ip: " + network.Masked().String() + "}"
	}
	return fmt.Sprintf(`"ip:%s", as the rule counts this address`, counted)
}

// splits reports whether the addresses of network have several keys.
func (p KeyPart) splits(network netip.Prefix) bool {
	first := string(p.appendAddress(nil, network.Addr()))
	counted, err := netip.ParsePrefix(first)
	if err != nil { // an address by itself
		return !network.IsSingleIP()
	}
	return network.Bits() < counted.Bits()
}
