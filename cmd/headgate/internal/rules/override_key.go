package rules

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/redisstore"
)

// CheckKey reports why an override of r for key, in which * stands for any text, matches no key
// that r makes.
func (r *Rule) CheckKey(key string) error {
	if len(r.Key) == 0 { // programs choose the keys
		if redisstore.IsHash(key) {
			return fmt.Errorf("%q is the hash of a key; want the key itself", key)
		}
		return nil
	}
	want := make([]string, len(r.Key))
	for i, p := range r.Key {
		want[i] = p.Source + ":..."
	}
	bad := fmt.Errorf("%q is not a key of rule %q; want one such as %q",
		key, r.Name, strings.Join(want, "|"))
	if literal, _, pattern := strings.Cut(key, "*"); pattern {
		first := r.Key[0].Source + ":"
		if !strings.HasPrefix(literal, first) && !strings.HasPrefix(first, literal) {
			return bad
		}
		return nil
	}
	parts := []string{key}
	if len(r.Key) > 1 {
		parts = strings.Split(key, "|")
	}
	if len(parts) != len(r.Key) {
		return bad
	}
	for i, part := range parts {
		value, found := strings.CutPrefix(part, r.Key[i].Source+":")
		if !found {
			return bad
		}
		if err := r.Key[i].checkValue(value); err != nil {
			return fmt.Errorf("%q is not a key of rule %q; want %w", key, r.Name, err)
		}
	}
	return nil
}

// checkValue reports what a key has instead of a value that requests can have.
func (p KeyPart) checkValue(value string) error {
	switch {
	case p.Source == "method" && value != cleanMethod(value):
		return fmt.Errorf(`"method:%s"`, cleanMethod(value))
	case p.Source == "host" && !isHostKey(value):
		return fmt.Errorf(`"host:%s"`, cleanHost(value))
	}
	if p.Source != "ip" || value == "unknown" {
		return nil
	}
	text, _, isNetwork := strings.Cut(value, "/")
	at, err := netip.ParseAddr(text)
	if err != nil {
		return errors.New(`"ip:" and an address, or a pattern with *`)
	}
	want := string(appendAddress(nil, at, p.Bits))
	if value == want {
		return nil
	}
	if network, err := netip.ParsePrefix(value); isNetwork && err == nil && p.splits(network) {
		return wantPattern(network)
	}
	return fmt.Errorf(`"ip:%s", as the rule counts this address`, want)
}

// isHostKey reports whether value is a name, an address or a hash.
func isHostKey(value string) bool {
	_, err := netip.ParseAddr(value)
	return err == nil || strings.HasPrefix(value, hashMark) ||
		strings.ReplaceAll(value, "%7C", "%7c") == cleanHost(value) // a | beside other parts
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
func wantPattern(network netip.Prefix) error {
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
		return errors.New("one override for each key in it, or patterns with *")
	}
	return fmt.Errorf(`a pattern such as "ip:%s%s*"`, start, separator)
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
