package grpclimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/grpclimit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The retries of grpc-go pass below the interceptors, as the comment of Client says. With
// grpc.WithDisableRetry, as many calls arrive as were made.
func TestRetriesOfTheConnection(t *testing.T) {
	const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted} {
		for want, options := range map[int64][]grpc.DialOption{55: nil, 11: {grpc.WithDisableRetry()}} {
			var arrived atomic.Int64
			address := serve(t, &echo{say: func(context.Context, *text) (*text, error) {
				arrived.Add(1)
				return nil, status.Error(code, "not now")
			}})
			c := newClient(t, newLimiter(t, headgate.NewMemory(), "100/s burst 1"), grpclimit.ClientOptions{})
			conn := dial(t, address, append(options, grpc.WithDefaultServiceConfig(policy), grpc.WithUnaryInterceptor(c.Unary))...)
			begun := time.Now()
			for range 11 {
				if _, err := call(t.Context(), conn); status.Code(err) != code {
					t.Error(err)
				}
			}
			if got := arrived.Load(); got != want {
				t.Errorf("%s: %d of 11 calls arrived; want %d", code, got, want)
			}
			if took := time.Since(begun); took < 100*time.Millisecond {
				t.Errorf("11 calls at 100/s took %s", took)
			}
		}
	}
}
