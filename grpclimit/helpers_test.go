package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/grpclimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

const (
	say  = "/test.Echo/Say"
	chat = "/test.Echo/Chat"
)

// echo is a service that answers each text with itself, or with an error of its own.
type echo struct {
	say  func(ctx context.Context, in *text) (*text, error)
	chat func(grpc.ServerStream) error
}

var description = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(
		service any, ctx context.Context, decode func(any) error, with grpc.UnaryServerInterceptor,
	) (any, error) {
		in := new(text)
		if err := decode(in); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, in any) (any, error) {
			return service.(*echo).say(ctx, in.(*text))
		}
		if with == nil {
			return handler(ctx, in)
		}
		return with(ctx, in, &grpc.UnaryServerInfo{Server: service, FullMethod: say}, handler)
	}}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Chat", ServerStreams: true, ClientStreams: true,
		Handler: func(service any, stream grpc.ServerStream) error {
			return service.(*echo).chat(stream)
		},
	}},
}

func echoes(_ context.Context, in *text) (*text, error) { return in, nil }

func chats(stream grpc.ServerStream) error {
	for {
		in := new(text)
		if err := stream.RecvMsg(in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(in); err != nil {
			return err
		}
	}
}

// serve starts a server on loopback and returns its address.
func serve(t testing.TB, e *echo, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, e, options...)
	return listener.Addr().String()
}

// serveOn starts a server on a listener.
func serveOn(t testing.TB, listener net.Listener, e *echo, options ...grpc.ServerOption) {
	t.Helper()
	if e.say == nil {
		e.say = echoes
	}
	if e.chat == nil {
		e.chat = chats
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&description, e)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// limited are the options of a server with the interceptors of limits.
func limited(s *grpclimit.ServerInterceptors) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.Unary), grpc.ChainStreamInterceptor(s.Stream),
	}
}

func newLimiter(t testing.TB, store headgate.Store, limits ...string) *headgate.Limiter {
	t.Helper()
	var ls []headgate.Limit
	for _, text := range limits {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, l)
	}
	limiter, err := headgate.NewLimiter(store, ls...)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func newServer(
	t testing.TB, l *headgate.Limiter, o grpclimit.Options,
) *grpclimit.ServerInterceptors {
	t.Helper()
	s, err := grpclimit.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call calls Say, and returns the header and the error.
func call(ctx context.Context, conn *grpc.ClientConn, pairs ...string) (metadata.MD, error) {
	var header metadata.MD
	ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
	err := conn.Invoke(ctx, say, wrapperspb.String("a"), new(text), grpc.Header(&header))
	return header, err
}

// retry returns the RetryInfo of an error, or 0.
func retry(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// broken is a store that is unavailable.
type broken struct{ headgate.Store }

var errBroken = errors.New("the store is away")

func (broken) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errBroken
}

func (broken) TakeAll(context.Context, []headgate.Request, []headgate.Decision) error {
	return errBroken
}
