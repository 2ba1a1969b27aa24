package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// A rule with max_wait answers takes and reservations at their turn, and nothing else.
func TestRuleThatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		began := time.Now()
		for _, c := range []struct {
			path, body string
			after      time.Duration // of the answer, since the beginning
			want       string
		}{
			{"/v1/take", "", 0, `"remaining":0,"retry_after":0,`},
			{"/v1/take", "", time.Second, `"remaining":0,"retry_after":0,`},
			{"/v1/reserve", "", 2 * time.Second, `"wait":0,"id":`},
			{"/v1/take", `, "cost": 2`, 2 * time.Second, `"remaining":0,"reset_after":`},
			{"/v1/take", `, "force": true`, 2 * time.Second, `"allowed":false`},
			{"/v1/peek", "", 2 * time.Second, `"retry_after":2,`},
			{"/v1/take-all", "", 2 * time.Second, `"retry_after":2,`},
			{"/v1/take", `, "max_wait": 3`, 2 * time.Second, `"wait":2`},
			{"/v1/take", "", 2 * time.Second, `"retry_after":3,`}, // more than max_wait
		} {
			body := `{"rule": "held", "key": "k"` + c.body + "}"
			if c.path == "/v1/take-all" {
				body = `{"requests": [` + body + "]}"
			}
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, httptest.NewRequestWithContext(
				t.Context(), http.MethodPost, c.path, strings.NewReader(body)))
			if took := time.Since(began); took != c.after ||
				!strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%s %s after %v: %s", c.path, body, took, w.Body)
			}
		}
		for i, e := range f.events[:3] {
			if e.Outcome != rules.Allowed || e.Cost != 1 {
				t.Errorf("event %d: %+v", i, e)
			}
		}
	})
}
