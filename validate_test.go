package headgate

import (
	"fmt"
	"testing"
)

// Whatever takes a store refuses what is none: nil, a nil pointer and a zero value of ours, which would panic when asked.
func TestNoStore(t *testing.T) {
	limit := PerSecond(1)
	for name, with := range map[string]func(Store) error{
		"NewLimiter":     func(s Store) error { _, err := NewLimiter(s, limit); return err },
		"NewLimiterFunc": func(s Store) error { _, err := NewLimiterFunc(s, func(string) []Limit { return nil }); return err },
		"AllowAll":       func(s Store) error { _, _, err := AllowAll(t.Context(), s, Request{Limit: limit, Cost: 1}); return err },
		"NewDenyCache":   func(s Store) error { _, err := NewDenyCache(s, DenyCacheOptions{}); return err },
		"NewLease":       func(s Store) error { _, err := NewLease(s, LeaseOptions{}); return err },
		"Observe":        func(s Store) error { _, err := Observe(s, Observer{}); return err },
	} {
		for _, none := range []Store{nil, (*Memory)(nil), new(Memory), (*DenyCache)(nil), new(DenyCache), (*Lease)(nil), new(Lease)} {
			const want = "headgate: store is nil or a zero value; want a Store, such as NewMemory(0)"
			if err := with(none); fmt.Sprint(err) != want {
				t.Errorf("%s of %T: %v; want %s", name, none, err, want)
			}
		}
		if err := with(NewMemory(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
