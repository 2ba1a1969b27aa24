package httplimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// discard is a ResponseWriter that costs as little as can be.
type discard struct{ header http.Header }

func (d discard) Header() http.Header            { return d.header }
func (d discard) Write(b []byte) (int, error)    { return len(b), nil }
func (d discard) WriteHeader(int)                {}
func nothing(http.ResponseWriter, *http.Request) {}

// The comparison with other middlewares is in bench/; this is for profiles.
func BenchmarkGrant(b *testing.B) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(0), headgate.TokenBucket(1e9, 1e9, time.Second))
	if err != nil {
		b.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := limit(http.HandlerFunc(nothing))
	r := &http.Request{Method: "GET", RemoteAddr: "192.0.2.1:1234", Header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}
