package grpcserver

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/wire"
)

const (
	serviceName = "envoy.service.ratelimit.v3.RateLimitService"
	method      = "/" + serviceName + "/ShouldRateLimit"
)

// rateLimitService describes the service by hand, as generated code would.
func rateLimitService(d Decider, failed func(error), recovered func(*error)) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		Methods: []grpc.MethodDesc{{
			MethodName: "ShouldRateLimit",
			Handler: func(
				_ any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor,
			) (reply any, err error) {
				defer recovered(&err)
				return shouldRateLimit(ctx, d, receive, failed)
			},
		}},
		Metadata: "envoy/service/ratelimit/v3/rls.proto",
	}
}

// call is the memory of one request, which is used again for others.
type call struct {
	message  mem.Buffer // holds the text of the request
	request  envoy.Request
	response envoy.Response
	encoded  []byte
}

// answer is an encoded response. It is not used again, because the transport keeps it until it is
// sent.
type answer [1]mem.Buffer

var calls = sync.Pool{New: func() any { return new(call) }}

func shouldRateLimit(
	ctx context.Context, d Decider, receive func(any) error, failed func(error),
) (*answer, error) {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool holds nothing else
	defer c.release()
	if err := receive(c); err != nil {
		failed(err)
		return nil, err
	}
	if err := wire.Decode(c.message.ReadOnlyData(), &c.request); err != nil {
		err = status.Error(codes.InvalidArgument, err.Error())
		failed(err)
		return nil, err
	}
	c.response.Reset()
	if err := d.Decide(ctx, &c.request, &c.response); err != nil {
		failed(err)
		return nil, statusOf(err)
	}
	c.encoded = wire.AppendResponse(c.encoded[:0], &c.response)
	return &answer{mem.Copy(c.encoded, mem.DefaultBufferPool())}, nil
}

func (c *call) free() {
	if c.message != nil {
		c.message.Free()
		c.message = nil
	}
}

// maxKept is how many descriptors, or entries of one of them, a call may have room for and be kept.
const maxKept = 64

// release puts c back, unless a request has made it large.
func (c *call) release() {
	c.free()
	small := cap(c.request.Descriptors) <= maxKept && cap(c.encoded) <= maxKeptAnswer
	for i := range c.request.Descriptors {
		small = small && cap(c.request.Descriptors[i].Entries) <= maxKept
	}
	if small {
		calls.Put(c)
	}
}

// statusOf gives an error of a Decider its code. It is UNKNOWN as upstream has it, and more exact
// where the error says more.
func statusOf(err error) error {
	if _, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	return status.Error(codes.Unknown, err.Error())
}
