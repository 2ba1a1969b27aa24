package rules

import (
	"cmp"
	"fmt"
	"net/netip"
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
	literal, _, pattern := strings.Cut(key, "*")
	switch {
	case len(r.Key) == 0 || r.AnyKey: // programs choose the keys
		if redisstore.IsHash(key) {
			return &KeyError{fmt.Sprintf("%q is the hash of a key; want the key itself", key)}
		}
		return nil
	case !pattern:
		return r.checkExactKey(key)
	}
	first := r.Key[0]
	value, whole := strings.CutPrefix(literal, first.Source+":")
	if !whole && !strings.HasPrefix(first.Source+":", literal) {
		return r.notMade(key, r.sample())
	}
	if first.Source == "cookie" || first.Source == "header" && keytext.IsCredential(first.Name) {
		if made := first.form(value + "x"); whole && made != value+"x" { // x as what * stands for
			return r.notMade(key, "a pattern such as "+
				strconv.Quote(first.Source+":"+strings.TrimSuffix(made, "x")+"*"))
		}
	}
	return nil
}

// checkExactKey returns a [KeyError] if r, which has a key, does not make this one.
func (r *Rule) checkExactKey(key string) error {
	parts := []string{key}
	if len(r.Key) > 1 {
		parts = strings.Split(key, "|")
	}
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
	counted := string(appendAddress(nil, at, p.Bits))
	if value == counted {
		return ""
	}
	if network, err := netip.ParsePrefix(value); isNetwork && err == nil && p.splits(network) {
		return wantPattern(network)
	}
	return fmt.Sprintf(`"ip:%s", as the rule counts this address`, counted)
}

// splits reports whether the addresses of network have several keys.
func (p KeyPart) splits(network netip.Prefix) bool {
	first := string(appendAddress(nil, network.Addr(), p.Bits))
	counted, err := netip.ParsePrefix(first)
	if err != nil { // an address by itself
		return !network.IsSingleIP()
	}
	return network.Bits() < counted.Bits()
}

// wantPattern says how to write an override for all keys in network.
func wantPattern(network netip.Prefix) string {
	network = network.Masked()
	at, step, separator := network.Addr(), 16, ":"
	if at.Is4() {
		step, separator = 8, "."
	}
	text := at.StringExpanded()
	parts := strings.Split(text, separator)[:network.Bits()/step]
	for i, part := range parts {
		parts[i] = cmp.Or(strings.TrimLeft(part, "0"), "0")
	}
	start := strings.Join(parts, separator)
	if network.Bits()%step != 0 || start == "" || at.Is6() && isShortened(parts) {
		return "one override for each key in it, or patterns with *"
	}
	return fmt.Sprintf(`a pattern such as "ip:%s%s*"`, start, separator)
}

// isShortened reports whether keys in the network that groups begin may be written with :: in them,
// so that a pattern would miss some.
func isShortened(groups []string) bool {
	last := ""
	for _, g := range groups {
		if g == "0" && last == "0" {
			return true
		}
		last = g
	}
	return last == "0"
}
