package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// A server whose clock is outside of the windows that the process sends grants no more than the
// limit, denies until a time that is known, and keeps no key for ever.
func TestCalendarsOnAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{-400 * 24 * time.Hour, 3 * 24 * time.Hour,
		400 * 24 * time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			s, err := redisstore.Open(redistest.StartAhead(t, ahead).URL())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			for _, l := range []headgate.Limit{headgate.Daily(5),
				headgate.Monthly(5).Anchored(17)} {
				r := headgate.Request{Key: "k", Limit: l, Cost: 1}
				granted := 0
				for range 20 {
					d := take(t, s, r)
					if d.Allowed() {
						granted++
					} else if d.RetryAfter <= 0 || d.ResetAfter < d.RetryAfter {
						t.Errorf("%s: %+v", l, d)
					}
				}
				if granted != 5 {
					t.Errorf("%s: %d granted", l, granted)
				}
			}
			for _, name := range s.Client().Keys(t.Context(), "*").Val() {
				if left := s.Client().PTTL(t.Context(), name).Val(); left <= 0 {
					t.Errorf("%s lives for %v", name, left)
				}
			}
		})
	}
}
