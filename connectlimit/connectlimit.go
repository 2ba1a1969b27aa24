// Package connectlimit limits the calls of Connect servers (connectrpc.com/connect), also those
// that come by gRPC and gRPC-Web.
//
// [New] makes an interceptor for a handler. It limits each client address, reports the limits in
// header fields, and answers calls over a limit with the code resource_exhausted.
//
// A client needs no interceptor: an http.Client with an httplimit.Transport waits before it sends,
// and obeys the pause that a response in Connect's own protocol asks for in its header fields.
package connectlimit

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Options configures [New]. The status that Count gets is the code of the call, 0 for success.
// Denied returns the error of a denied call. If Denied is nil or returns nil, the error is that of
// [Exhausted].
type Options = httplimit.OptionsOf[*Call, func(*Call, []headgate.Decision) *connect.Error]

// Call is a call that a server received.
type Call struct {
	Spec    connect.Spec // the method, and the type of its stream
	Peer    connect.Peer
	Header  http.Header
	Message any             // the request; nil when a stream begins
	ctx     context.Context //nolint:containedctx // as in http.Request
}

// Context returns the context of the call.
func (c *Call) Context() context.Context { return c.ctx }

// Key adapts a key function to calls: the path of a call is its procedure, and the host is empty.
func Key(k httplimit.KeyFunc) func(*Call) string {
	return func(c *Call) string { return k(request{c}) }
}

// request is a Request of httplimit.
type request struct{ *Call }

func (r request) RemoteAddr() string         { return r.Peer.Addr }
func (r request) Host() string               { return "" }
func (r request) Path() string               { return r.Spec.Procedure }
func (r request) Field(name string) []string { return r.Header[name] }

type interceptor struct {
	*httplimit.Decider[*Call, func(*Call, []headgate.Decision) *connect.Error]
}

// New makes an interceptor that limits unary calls, and how many streams begin: a stream that has
// begun may carry any number of messages. In a client, it does nothing. It returns a
// [headgate.InvalidError] if l is nil or the options are invalid.
func New(l *headgate.Limiter, o Options) (connect.Interceptor, error) {
	if o.Key == nil {
		o.Key = Key(httplimit.RemoteAddress)
	}
	if o.Denied == nil {
		o.Denied = Exhausted
	}
	d, err := httplimit.NewDecider(l, o)
	if err != nil {
		return nil, err
	}
	return interceptor{d}, nil
}

// Exhausted returns the code resource_exhausted with the RetryInfo of the longest wait. There is no
// RetryInfo if no wait helps, because the cost can never fit.
func Exhausted(_ *Call, denied []headgate.Decision) *connect.Error {
	v := httplimit.Verdict{Status: http.StatusTooManyRequests, Denied: denied}
	e := connect.NewError(connect.CodeResourceExhausted, errors.New(v.Detail()))
	if wait := headgate.Strictest(denied).RetryAfter; wait != headgate.Never {
		info := &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}
		if detail, err := connect.NewErrorDetail(info); err == nil { // always
			e.AddDetail(detail)
		}
	}
	return e
}

func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if r.Spec().IsClient {
			return next(ctx, r)
		}
		c := &Call{r.Spec(), r.Peer(), r.Header(), r.Any(), ctx}
		info, _ := connect.CallInfoForHandlerContext(ctx)
		v, err := i.decide(c, info.ResponseHeader())
		if err != nil {
			return nil, err
		}
		response, err := next(ctx, r)
		i.Outcome(ctx, c, v, codeOf(err))
		return response, err
	}
}

func (i interceptor) WrapStreamingClient(
	f connect.StreamingClientFunc,
) connect.StreamingClientFunc {
	return f
}

func (i interceptor) WrapStreamingHandler(
	next connect.StreamingHandlerFunc,
) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		c := &Call{conn.Spec(), conn.Peer(), conn.RequestHeader(), nil, ctx}
		v, err := i.decide(c, conn.ResponseHeader())
		if err != nil {
			return err
		}
		err = next(ctx, conn)
		i.Outcome(ctx, c, v, codeOf(err))
		return err
	}
}

// decide decides c, and returns the error of a call that does not pass.
func (i interceptor) decide(c *Call, h http.Header) (v httplimit.Verdict, err error) {
	v = i.Decide(c.ctx, c, h)
	switch {
	case v.Status == 0:
		return v, nil
	case v.Status == http.StatusTooManyRequests:
		if err := i.Denied(c, v.Denied); err != nil {
			return v, err
		}
		return v, Exhausted(c, v.Denied)
	case c.ctx.Err() != nil:
		return v, c.ctx.Err()
	}
	return v, connect.NewError(connect.CodeUnavailable, errors.New(v.Detail()))
}

// codeOf returns the code of a call, 0 for success.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return int(connect.CodeOf(err))
}
