package grpclimit

import (
	"cmp"
	"context"
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
	// A call of cost 0 waits only for the end of a pause. Default, and for a cost below 0: 1.
	Cost func(fullMethod string, message any) int64

	// MaxPause is the longest pause that an answer can cause, at most a year. A longer one is
	// shortened to it. Default: an hour.
	MaxPause time.Duration

	// FailOpen sends calls without waiting while the store is unavailable; pauses that this process
	// was asked for still apply. Default: the call fails with UNAVAILABLE.
	FailOpen bool

	// Observe is called with each pause that an answer asks for, and with each error of the store.
	// It must be safe for concurrent use. Default: none.
	Observe func(fullMethod string, pause time.Duration, err error)
}

// Client has the interceptors of a client: a call waits until its limits allow it, and until the
// pauses that the server asked for are over.
//
// An answer RESOURCE_EXHAUSTED with a RetryInfo asks for a pause: the next calls of its key wait.
// Pauses are kept in the limiter's store, as by [httplimit.Transport], so that all processes that
// share the store keep them. The answer is returned unchanged, and nothing is sent again: to retry,
// make a new call, which waits.
//
// A call that could not be sent before its deadline fails at once with DEADLINE_EXCEEDED, and
// charges nothing. Calls that waited for a pause are sent in any order.
type Client struct {
	options ClientOptions
	limiter *headgate.Limiter
	pauses  *pause.Pauses[string]
}

// NewClient makes the interceptors of a client. It returns a [headgate.InvalidError] if l is nil or
// the options are invalid.
func NewClient(l *headgate.Limiter, o ClientOptions) (*Client, error) {
	switch {
	case l == nil:
		return nil, &headgate.InvalidError{
			Field: "limiter", Value: "nil", Want: "one made by headgate.NewLimiter",
		}
	case o.MaxPause < 0 || o.MaxPause > pause.Longest:
		return nil, &headgate.InvalidError{
			Field: "MaxPause", Value: o.MaxPause.String(),
			Want: "more than 0 and at most a year, or 0 for an hour",
		}
	}
	if o.Key == nil {
		o.Key = func(_ context.Context, target, _ string) string { return "grpc:" + target }
	}
	p := pause.Pauses[string]{
		Max:      cmp.Or(o.MaxPause, httplimit.DefaultMaxPause),
		FailOpen: o.FailOpen, Observe: o.Observe,
	}
	return &Client{o, l, p.In(l.Store())}, nil
}

// Unary is a grpc.UnaryClientInterceptor.
func (c *Client) Unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	key := c.options.Key(ctx, conn.CanonicalTarget(), method)
	if err := c.wait(ctx, key, method, request); err != nil {
		return err
	}
	return c.answered(ctx, key, method, invoke(ctx, method, request, reply, conn, options...))
}

// Stream is a grpc.StreamClientInterceptor that waits before a stream begins.
func (c *Client) Stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	key := c.options.Key(ctx, conn.CanonicalTarget(), method)
	if err := c.wait(ctx, key, method, nil); err != nil {
		return nil, err
	}
	stream, err := streamer(ctx, description, conn, method, options...)
	return &clientStream{stream, c, key, method, false}, c.answered(ctx, key, method, err)
}

// Messages is a grpc.StreamClientInterceptor that waits before each message that it sends, and not
// before the stream.
func (c *Client) Messages(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	key := c.options.Key(ctx, conn.CanonicalTarget(), method)
	stream, err := streamer(ctx, description, conn, method, options...)
	return &clientStream{stream, c, key, method, true}, c.answered(ctx, key, method, err)
}

type clientStream struct {
	grpc.ClientStream

	client      *Client
	key, method string
	waits       bool // before each message
}

func (s *clientStream) SendMsg(message any) error {
	if s.waits {
		if err := s.client.wait(s.Context(), s.key, s.method, message); err != nil {
			return err
		}
	}
	return s.ClientStream.SendMsg(message)
}

func (s *clientStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	return s.client.answered(s.Context(), s.key, s.method, err)
}

// wait waits until a call may be sent, and returns a status if it may not.
func (c *Client) wait(ctx context.Context, key, method string, message any) error {
	cost := int64(1)
	if c.options.Cost != nil {
		cost = c.options.Cost(method, message)
		if cost < 0 {
			cost = 1
		}
	}
	err := c.waitTurn(ctx, key, method, cost)
	if headgate.Unavailable(err) && ctx.Err() == nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return status.FromContextError(err).Err()
}

// waitTurn waits for the end of a pause and for a turn. If a pause began meanwhile, it refunds the
// turn and waits again.
func (c *Client) waitTurn(ctx context.Context, key, method string, cost int64) error {
	for {
		err := c.pauses.Wait(ctx, method, key)
		if err != nil || cost == 0 {
			return err
		}
		err = c.limiter.WaitN(ctx, key, cost)
		if err := c.pauses.Failed(ctx, method, err); err != nil {
			return err
		}
		left, err := c.pauses.Left(ctx, method, key)
		if err != nil || left == 0 {
			return err
		}
		_, err = c.limiter.Refund(ctx, key, cost)
		if err := c.pauses.Failed(ctx, method, err); err != nil {
			return err
		}
	}
}

// answered keeps the pause that the error of a call asks for, and returns the error.
func (c *Client) answered(ctx context.Context, key, method string, err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.ResourceExhausted {
		return err
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
			ctx, cancel := pause.Recording(ctx)
			defer cancel()
			c.pauses.Extend(ctx, method, key, info.GetRetryDelay().AsDuration())
			break
		}
	}
	return err
}
