// Package grpcserver serves Envoy's rate limit protocol and grpc.health.v1 over gRPC.
package grpcserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy/wire"
	"github.com/headgate/headgate/cmd/headgate/internal/listen"
)

// Decider decides requests. See [wire.Decider] for how long a request is valid.
type Decider = wire.Decider

// Options configures a server. The zero Options are useful.
type Options struct {
	TLS *tls.Config // nil: plain text

	// MaxConnectionAge is when a connection is asked to close, give or take a tenth; 0: never.
	// Its requests have MaxConnectionAgeGrace to end; 0: without end.
	MaxConnectionAge      time.Duration
	MaxConnectionAgeGrace time.Duration

	// Timeout is how long a request may take to arrive, or its connection is closed; 0: 15 s.
	Timeout time.Duration

	MaxStreams int // requests at once on a connection; 0: 250

	// Register adds further services. Default: none.
	Register func(grpc.ServiceRegistrar)

	// Failed is called with the error of each call of Envoy that fails. Default: none.
	Failed func(error)

	// Refused is called for a client that uses another protocol than the server. mistake includes
	// the fix. err is the error of the TLS handshake, or nil. Default: none.
	Refused func(client net.Addr, mistake string, err error)

	// Panicked is called with the value of a panic, whose request is answered INTERNAL.
	// Default: the panic goes on.
	Panicked func(value any)
}

// What every server is bounded by. A request is some hundred bytes long.
const (
	maxMessage    = 4 << 20
	maxKeptAnswer = 64 << 10
	maxHeaderList = 256 << 10 // Envoy may copy fields of a client, as of a trace, into its calls
	window        = 64 << 10  // of a stream; less is not possible

	maxStreams = 250

	requestTimeout   = 15 * time.Second
	handshakeTimeout = 10 * time.Second
	maxIdle          = time.Hour        // of a connection without requests
	pingAfter        = time.Minute      // of silence, to find peers that are gone
	pingTimeout      = 20 * time.Second // until a peer that does not answer is gone
	minPingInterval  = 10 * time.Second // of clients; more often is a flood
)

// workers is how many goroutines are kept for requests; more requests at once have one of their
// own. Its stack must grow first, which costs a seventh of a call. Most wait for the store, so
// there are many more than processors.
const workers = 128

// Server is a gRPC server. Its health is NOT_SERVING until SetReady.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	options Options

	connections atomic.Pointer[listen.Listener]
	held        atomic.Int64 // bytes of incomplete requests

	stopping context.Context //nolint:containedctx // GracefulStop ends it, and streams with it
	stop     context.CancelFunc
}

// New returns a server that decides by d.
func New(d Decider, o Options) *Server {
	if o.MaxStreams <= 0 || o.MaxStreams > math.MaxInt32 {
		o.MaxStreams = maxStreams
	}
	if o.Timeout <= 0 {
		o.Timeout = requestTimeout
	}
	s := &Server{health: health.NewServer(), options: o}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(s.serverOptions()...)
	s.grpc.RegisterService(rateLimitService(d, s.failed, s.recovered), nil)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	if o.Register != nil {
		o.Register(s.grpc)
	}
	s.SetReady(false)
	return s
}

// serverOptions bounds what a client can make the server hold. There is no statistics handler on
// the way of a rate limit request, which ignores interceptors.
func (s *Server) serverOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.NumStreamWorkers(workers),
		grpc.StreamInterceptor(s.endWithServer),
		grpc.UnaryInterceptor(s.recoverUnary),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaderList),
		// Also the bound of handlers that run for a connection, whose client may have reset their
		// streams already.
		grpc.MaxConcurrentStreams(uint32(s.options.MaxStreams)),
		grpc.ConnectionTimeout(handshakeTimeout),
		// A static window saves the ping with which grpc-go measures the line: messages are small.
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(1 << 20),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     maxIdle,
			MaxConnectionAge:      s.options.MaxConnectionAge,
			MaxConnectionAgeGrace: s.options.MaxConnectionAgeGrace,
			Time:                  pingAfter,
			Timeout:               pingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             minPingInterval,
			PermitWithoutStream: true, // Envoy pings idle connections
		}),
	}
	security := insecure.NewCredentials()
	if s.options.TLS != nil {
		security = credentials.NewTLS(s.options.TLS)
	}
	return append(options, grpc.Creds(watching{
		security, s.options.Timeout, s.count, &s.held, s.refused,
	}))
}

// Serve answers requests on l until the server stops, and closes l. It returns nil if the server
// was stopped.
func (s *Server) Serve(l *listen.Listener) error {
	s.connections.Store(l)
	if err := s.grpc.Serve(l); err != nil {
		return fmt.Errorf("grpc: serving %s: %w", l.Addr(), err)
	}
	return nil
}

// count returns the number of open connections.
func (s *Server) count() int {
	if l := s.connections.Load(); l != nil {
		return l.Count()
	}
	return 0
}

// SetReady tells clients of grpc.health.v1 whether to send requests. Requests are answered anyway.
func (s *Server) SetReady(ready bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus("ratelimit", status)
}

// GracefulStop takes no more requests, and returns when those in flight are answered.
//
// If ctx ends before that, they are cut off, and an error says so.
func (s *Server) GracefulStop(ctx context.Context) error {
	s.health.Shutdown()
	s.stop()
	l := s.connections.Load()
	if l != nil {
		l.CloseSilent() // grpc-go would wait for a preface
	}
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
	}
	if l != nil {
		l.CloseAll()
	}
	s.grpc.Stop()
	return fmt.Errorf("grpc: requests in progress were cut off: %w", context.Cause(ctx))
}

// endWithServer ends streams when the server stops: a client that watches the health of the server
// would hold up GracefulStop for ever. Rate limit requests are no streams.
func (s *Server) endWithServer(
	srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler,
) (err error) {
	defer s.recovered(&err)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return handle(srv, boundStream{stream, ctx})
}

// recoverUnary answers a call whose handler panics, and reports calls of Envoy that fail.
func (s *Server) recoverUnary(
	ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (reply any, err error) {
	defer s.recovered(&err)
	reply, err = handle(ctx, request)
	if err != nil && strings.HasPrefix(call.FullMethod, "/envoy.") {
		s.failed(err)
	}
	return reply, err
}

// refused reports a client that makes a mistake.
func (s *Server) refused(client net.Addr, m mistake, err error) {
	if s.options.Refused != nil && m != "" {
		s.options.Refused(client, string(m), err)
	}
}

// failed reports an error of a call of Envoy.
func (s *Server) failed(err error) {
	if s.options.Failed != nil {
		s.options.Failed(err)
	}
}

// recovered turns a panic into the error of a request. Handlers defer it.
func (s *Server) recovered(err *error) {
	if s.options.Panicked == nil {
		return
	}
	if p := recover(); p != nil {
		s.options.Panicked(p)
		*err = status.Error(codes.Internal, "an internal error ended this request")
		s.failed(*err)
	}
}

type boundStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc.ServerStream returns its context
}

// Context ends with the stream or with the server.
func (s boundStream) Context() context.Context { return s.ctx }
