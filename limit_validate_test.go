package headgate

import (
	"context"
	"fmt"
	"testing"
)

// A store that is nil, a nil pointer or a zero value would panic when it is called.
func TestNoStore(t *testing.T) {
	limit := PerSecond(1)
	for name, with := range map[string]func(Store) error{
		"NewLimiter": func(s Store) error { _, err := NewLimiter(s, limit); return err },
		"NewLimiterFunc": func(s Store) error {
			_, err := NewLimiterFunc(s, func(context.Context, string) ([]Limit, error) { return nil, nil })
			return err
		},
		"AllowAll": func(s Store) error { _, _, err := AllowAll(t.Context(), s, Request{Limit: limit, Cost: 1}); return err },
	} {
		for _, none := range []Store{nil, (*Memory)(nil), new(Memory)} {
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
