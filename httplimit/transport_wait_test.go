package httplimit_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// far is a store that is a millisecond away, and asks nothing for those who have gone.
type far struct{ headgate.Store }

func (f far) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(time.Millisecond)
	if err := ctx.Err(); err != nil {
		return headgate.Decision{}, err
	}
	return f.Store.Take(ctx, r)
}

func (f far) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	time.Sleep(time.Millisecond)
	return f.Store.TakeAll(ctx, rs, ds)
}

// pausing is an API whose answer to /pause asks for a pause of 30 s.
func pausing(r *http.Request) *http.Response {
	if r.URL.Path == "/pause" {
		return reply(http.StatusTooManyRequests, "Retry-After: 30")
	}
	return nil
}

// A pause is kept whatever becomes of the request whose answer asked for it.
func TestPauseOfACanceledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(far{headgate.NewMemorySize(100)}, parse(t, "1000/s"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		a := &api{answer: func(r *http.Request) *http.Response {
			cancel()
			return pausing(r)
		}}
		client := newClient(t, l, a, httplimit.TransportOptions{})
		call(ctx, client, "http://api.example/pause")
		before := time.Now()
		if call(t.Context(), client,
			"http://api.example/"); time.Since(before).Round(time.Second) != 30*time.Second {
			t.Errorf("the next call was made after %s", time.Since(before))
		}
	})
}
