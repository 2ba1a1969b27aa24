package rules

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// CheckKey reports why an override of r for key, in which * stands for any text, matches no key
// that r makes.
func (r *Rule) CheckKey(key string) error {
	if len(r.Key) == 0 {
		if key == keyOfAll || strings.Contains(key, "*") {
			return nil
		}
		return fmt.Errorf("%q is not a key of rule %q; want %q", key, r.Name, keyOfAll)
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

// checkValue reports what a key has instead of an address.
func (p KeyPart) checkValue(value string) error {
	if p.Source != "ip" || value == "unknown" {
		return nil
	}
	if pattern := p.networkPattern(value); pattern != "" {
		return fmt.Errorf(`"ip:%s", a pattern for all addresses of this network`, pattern)
	}
	text, _, _ := strings.Cut(value, "/")
	at, err := netip.ParseAddr(text)
	if err != nil {
		return errors.New(`"ip:" and an address, or a pattern with *`)
	}
	if n, err := netip.ParsePrefix(value); err == nil && n.Bits() < p.keyBits(n.Addr()) {
		return errors.New("one address, or a pattern with * such as \"ip:10.*\": " +
			"an override is not for a network")
	}
	if want := string(appendAddress(nil, at, p.Bits)); value != want {
		return fmt.Errorf(`"ip:%s", as the rule counts this address`, want)
	}
	return nil
}

// keyBits is how many bits of an address the keys of p have.
func (p KeyPart) keyBits(at netip.Addr) int {
	if at.Unmap().Is4() {
		return 32
	}
	return min(cmp.Or(p.Bits, 64), 128)
}

// networkPattern returns the pattern for the keys of network, in which * stands for any text. It
// returns "" if network is none that has several keys, or no pattern is for exactly these.
func (p KeyPart) networkPattern(network string) string {
	n, err := netip.ParsePrefix(network)
	if err != nil || n.Bits() == 0 || n.Bits() >= p.keyBits(n.Addr()) {
		return ""
	}
	unit, separator := 8, "."
	if n.Addr().Is6() {
		unit, separator = 16, ":"
	}
	parts := strings.Split(n.Masked().Addr().String(), separator)
	parts = parts[:min(n.Bits()/unit, len(parts))]
	// An empty part stands for zeros, of which other addresses have fewer.
	if n.Bits()%unit != 0 || unit == 16 && slices.ContainsFunc(parts, isZero) {
		return ""
	}
	return strings.Join(parts, separator) + separator + "*"
}

func isZero(part string) bool { return part == "" || part == "0" }
