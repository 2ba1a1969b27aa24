package limittest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// withoutBooking returns what is wrong unless s answers each request with MaxWait, alone or in a
// group, with ErrNoBooking, and charges nothing then: Limiter.Wait asks again without MaxWait.
func withoutBooking(t *testing.T, s headgate.Store) (fault string) {
	l := parse(t, "10/m")
	waits := headgate.Request{Key: "waits", Limit: l, Cost: 3, MaxWait: time.Second, At: epoch}
	plain := headgate.Request{Key: "plain", Limit: l, Cost: 3, At: epoch}
	other := waits
	other.Key = "plain"
	_, err := s.Take(t.Context(), waits)
	answers := map[string]error{"Take": err}
	for name, rs := range map[string][]headgate.Request{
		"TakeAll of one":                    {waits},
		"TakeAll of two":                    {waits, other},
		"TakeAll of one and a plain before": {plain, waits},
		"TakeAll of one and a plain after":  {waits, plain},
	} {
		answers[name] = s.TakeAll(t.Context(), rs, make([]headgate.Decision, len(rs)))
	}
	for name, err := range answers {
		if !errors.Is(err, headgate.ErrNoBooking) {
			return fmt.Sprintf("%s with MaxWait: %v; want ErrNoBooking, as for a peek", name, err)
		}
	}
	for _, key := range []string{"waits", "plain"} {
		d := take(t, s, headgate.Request{Key: key, Limit: l, At: epoch})
		if d.Remaining != 10 {
			return fmt.Sprintf("ErrNoBooking, but %d of 10 were charged to %q; want none",
				10-d.Remaining, key)
		}
	}
	return ""
}
