package rules

import (
	"errors"
	"fmt"
	"net/netip"
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
	text, _, _ := strings.Cut(value, "/")
	at, err := netip.ParseAddr(text)
	if err != nil {
		return errors.New(`"ip:" and an address, or a pattern with *`)
	}
	if want := string(appendAddress(nil, at, p.Bits)); value != want {
		return fmt.Errorf(`"ip:%s", as the rule counts this address`, want)
	}
	return nil
}
