package grpclimit

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/pause"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ClientOptions configures [NewClient]. The zero ClientOptions limits each target at a cost of 1
// per call, and sends nothing while the store is unavailable.
type ClientOptions struct {
	// Key returns the key of a call. Default: the target of the connection.
	Key func(ctx context.Context, target, fullMethod string) string

	// Cost returns how many tokens a call takes: message is its request, nil when a stream begins.
	// A call of cost 0 waits only for the end of a pause. A cost below 0 counts as 1. Default: 1.
	Cost func(fullMethod string, message any) int64

	// MaxPause is the longest pause that an answer can cause, at most a year. A longer one is
	// shortened to it. Default: an hour.
	MaxPause time.Duration

	// WhenStoreFails is what happens to calls while the store is unavailable. With
	// [httplimit.Closed], they fail with UNAVAILABLE. With [httplimit.Open], they are sent without
	// waiting; pauses that answers to this process asked for still apply. Default: Closed.
	WhenStoreFails httplimit.Mode

	// Observe is called with each pause that an answer asks for, and with each error of the store.
	// It must be safe for concurrent use, and must not panic. Default: none.
	Observe func(fullMethod string, pause time.Duration, err error)

	// Waited is called before a call is sent, with how long it waited for the limits and for the
	// end of pauses. It must be safe for concurrent use, and must not panic. Default: none.
	Waited func(fullMethod string, d time.Duration)
}

// ClientInterceptors limit the calls that a client sends: a call waits until its limits allow it,
// and until the pauses that the server asked for are over.
//
// An answer RESOURCE_EXHAUSTED with a RetryInfo asks for a pause: the next calls with the same key
// wait. Pauses are kept in the limiter's store, as by [httplimit.Transport], so that all processes
// that share the store obey them. The answer is returned unchanged. To retry, make a new call,
// which waits.
//
// A call that cannot be sent before its deadline fails as soon as that is certain, with
// DEADLINE_EXCEEDED, and charges nothing.
//
// # Retries
//
// If the service config has a retryPolicy, grpc-go sends calls again by itself, below the
// interceptors. These attempts neither wait nor count: with up to 5 attempts, and a server that
// answers UNAVAILABLE, 11 calls become 55. The service config can also come from the resolver. So
// give the connection [grpc.WithDisableRetry]. With it, grpc-go repeats a call only if no server
// has processed it.
type ClientInterceptors struct {
	options ClientOptions
	pauses  pause.Pauses[string]
}

// NewClient makes the interceptors of a client. It returns a [headgate.InvalidError] if l is nil or
// the options are invalid.
func NewClient(l *headgate.Limiter, o ClientOptions) (*ClientInterceptors, error) {
	if o.WhenStoreFails > httplimit.Open {
		return nil, &headgate.InvalidError{
			Field: "WhenStoreFails", Value: strconv.Itoa(int(o.WhenStoreFails)),
			Want: "Closed or Open",
		}
	}
	if o.Key == nil {
		o.Key = func(_ context.Context, target, _ string) string { return "grpc:" + target }
	}
	c := &ClientInterceptors{options: o, pauses: pause.Pauses[string]{
		Max: o.MaxPause, Open: o.WhenStoreFails == httplimit.Open,
		Observe: o.Observe, Waited: o.Waited,
	}}
	if err := c.pauses.Init(l); err != nil {
		return nil, err
	}
	return c, nil
}

// Unary is a grpc.UnaryClientInterceptor.
func (c *ClientInterceptors) Unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	answered, err := c.wait(ctx, conn, method, request)
	if err != nil {
		return err
	}
	err = invoke(ctx, method, request, reply, conn, options...)
	answered(err)
	return err
}

// Stream is a grpc.StreamClientInterceptor that waits before a stream begins. If a later
// interceptor returns an error and no stream, this error asks for no pause.
func (c *ClientInterceptors) Stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	answered, err := c.wait(ctx, conn, method, nil)
	if err != nil {
		return nil, err
	}
	finish := []grpc.CallOption{grpc.OnFinish(answered)} // options can be shared by calls
	return streamer(ctx, description, conn, method, slices.Concat(options, finish)...)
}

// wait waits until a call may be sent, and returns a status if it may not. The function keeps the
// pause that the error of the call asks for.
func (c *ClientInterceptors) wait(
	ctx context.Context, conn *grpc.ClientConn, method string, message any,
) (answered func(error), err error) {
	cost := int64(1)
	if c.options.Cost != nil {
		if n := c.options.Cost(method, message); n >= 0 {
			cost = n
		}
	}
	key := c.options.Key(ctx, conn.CanonicalTarget(), method)
	_, _, err = c.pauses.Wait(ctx, method, key, cost)
	if headgate.Unavailable(ctx, err) {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return func(err error) {
		if status.Code(err) != codes.ResourceExhausted {
			return
		}
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				c.pauses.Answered(ctx, method, key, info.GetRetryDelay().AsDuration(), nil)
				return
			}
		}
	}, status.FromContextError(err).Err()
}
