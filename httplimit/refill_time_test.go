package httplimit_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// A store of somebody else may answer any Remaining. The fields then have some time, and no panic.
func TestFieldsOfAnyRemaining(t *testing.T) {
	limit := headgate.Per(1, 365*24*time.Hour).Burst(1000)
	for _, remaining := range []int64{math.MinInt64, -1 << 60, -1, 0, 999, math.MaxInt64} {
		h := http.Header{}
		d := headgate.Decision{Limit: limit, Remaining: remaining}
		httplimit.AllFields.Write(h, time.Now(), d)
		if h.Get("Ratelimit") == "" {
			t.Errorf("no field for %d remaining", remaining)
		}
	}
}
