//go:build !race

// Under the race detector sync.Pool forgets at random, and allocations cannot be counted.

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/httplimit"
)

// Each request makes three allocations of its own: the key, and two for all fields.
func TestAllocations(t *testing.T) {
	w := &bare{http.Header{}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, texts := range [][]string{{"1000000/s"},
		{"second=1000000/s", "day=1000000000/d fixed-window"}} {
		limit, err := httplimit.New(newLimiter(t, texts...), httplimit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if n := testing.AllocsPerRun(1000, func() { clear(w.header); h.ServeHTTP(w, r) }); n > 3 {
			t.Errorf("%v allocations for a grant by %q; want 3", n, texts)
		}
	}
}

// bare is a ResponseWriter that allocates nothing.
type bare struct{ header http.Header }

func (b *bare) Header() http.Header         { return b.header }
func (b *bare) Write(p []byte) (int, error) { return len(p), nil }
func (b *bare) WriteHeader(int)             {}
