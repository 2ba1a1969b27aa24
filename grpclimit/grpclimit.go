// Package grpclimit limits the calls of gRPC servers and clients.
//
// [New] makes the interceptors of a server, for grpc.ChainUnaryInterceptor and
// grpc.ChainStreamInterceptor. They limit each client address, report the limits in metadata, and
// answer calls over a limit with RESOURCE_EXHAUSTED. [NewClient] makes interceptors that keep a
// client within the limits of a server: they wait before they send. The example has both.
package grpclimit

import (
	"context"
	"net/http"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Options configures [New]. The status that Count gets is the code of the call. Denied returns the
// error of a denied call. If Denied is nil or returns nil, the error is that of [Exhausted].
type Options = httplimit.OptionsOf[*Call, func(*Call, []headgate.Decision) error]

// Call is a call that a server received.
type Call struct {
	FullMethod string          // such as /package.Service/Method
	Message    any             // the request; nil when a stream begins
	ctx        context.Context //nolint:containedctx // as in http.Request
}

// Context returns the context of the call.
func (c *Call) Context() context.Context { return c.ctx }

// Key adapts a key function of httplimit to calls. The header fields are the metadata of the call,
// and the path is its FullMethod.
func Key(k httplimit.KeyFunc) func(*Call) string {
	return func(c *Call) string { return k(request{c}) }
}

// request is a Request of httplimit.
type request struct{ *Call }

func (r request) Host() string { return strings.Join(r.Field(":authority"), ",") }
func (r request) Path() string { return r.FullMethod }
func (r request) Field(name string) []string {
	return metadata.ValueFromIncomingContext(r.ctx, name)
}
func (r request) RemoteAddr() string {
	if p, ok := peer.FromContext(r.ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// ServerInterceptors limit the calls that a server receives.
type ServerInterceptors struct {
	decider *httplimit.Decider[*Call, func(*Call, []headgate.Decision) error]
}

// New makes the interceptors of a server. It returns a [headgate.InvalidError] if l is nil or the
// options are invalid.
func New(l *headgate.Limiter, o Options) (*ServerInterceptors, error) {
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
	return &ServerInterceptors{d}, nil
}

// Exhausted returns the status RESOURCE_EXHAUSTED with the RetryInfo of the longest wait. There is
// no RetryInfo if no wait helps, because the cost can never fit.
func Exhausted(_ *Call, denied []headgate.Decision) error {
	v := httplimit.Verdict{Status: http.StatusTooManyRequests, Denied: denied}
	s := status.New(codes.ResourceExhausted, v.Detail())
	if wait := headgate.Strictest(denied).RetryAfter; wait != headgate.Never {
		// No error: a duration can be encoded.
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	return s.Err()
}

// Unary is a grpc.UnaryServerInterceptor that limits unary calls.
func (s *ServerInterceptors) Unary(
	ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (response any, err error) {
	err = s.serve(&Call{info.FullMethod, message, ctx}, func() error {
		response, err = handler(ctx, message)
		return err
	})
	return response, err
}

// Stream is a grpc.StreamServerInterceptor that limits how many streams begin. A stream that has
// begun may carry any number of messages; see [ServerInterceptors.Messages].
func (s *ServerInterceptors) Stream(
	service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	return s.serve(&Call{info.FullMethod, nil, stream.Context()}, func() error {
		return handler(service, stream)
	})
}

// serve calls the handler of c if c passes. A panic of the handler leaves c charged.
func (s *ServerInterceptors) serve(c *Call, handler func() error) error {
	fields := make(map[string][]string, 6)
	v, err := s.decide(c, fields)
	md := make(metadata.MD, len(fields))
	for name, values := range fields {
		md.Append(name, values...)
	}
	_ = grpc.SetHeader(c.ctx, md) // an error: the header is sent already
	if err != nil {
		return err
	}
	err = handler()
	sent, ok := status.FromError(err)
	if !ok {
		sent = status.FromContextError(err) // as the server does
	}
	s.decider.Outcome(c.ctx, c, v, int(sent.Code()))
	return err
}

// Messages is a grpc.StreamServerInterceptor that limits the messages that a stream receives, and
// not the stream. For a denied message, RecvMsg returns an error, which the handler should return.
// Every message counts, whatever the status of the stream. No metadata reports these limits.
func (s *ServerInterceptors) Messages(
	service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	return handler(service, &messages{stream, s, info.FullMethod})
}

type messages struct {
	grpc.ServerStream
	server     *ServerInterceptors
	fullMethod string
}

func (m *messages) RecvMsg(message any) error {
	if err := m.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	c := &Call{m.fullMethod, message, m.Context()}
	_, err := m.server.decide(c, make(map[string][]string))
	return err
}

// decide decides c, and returns the error of a call that does not pass.
func (s *ServerInterceptors) decide(
	c *Call, fields map[string][]string,
) (httplimit.Verdict, error) {
	v := s.decider.Decide(c.ctx, c, fields)
	switch {
	case v.Status == 0:
		return v, nil
	case v.Status == http.StatusTooManyRequests:
		if err := s.decider.Denied(c, v.Denied); err != nil {
			return v, err
		}
		return v, Exhausted(c, v.Denied)
	case c.ctx.Err() != nil:
		return v, status.FromContextError(c.ctx.Err()).Err()
	}
	return v, status.Error(codes.Unavailable, v.Detail())
}
