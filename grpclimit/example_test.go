package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/grpclimit"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// A server limits each API key, and a client keeps within its limit.
func Example() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := grpclimit.New(limiter, grpclimit.Options{
		Key:            grpclimit.Key(httplimit.Header("X-Api-Key")),
		WhenStoreFails: httplimit.Closed,
	})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limit.Unary),
		grpc.ChainStreamInterceptor(limit.Stream),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	target := listener.Addr().String()

	own, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	paced, err := grpclimit.NewClient(own, grpclimit.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(paced.Unary),
		grpc.WithChainStreamInterceptor(paced.Stream),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 4 {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// DeadlineExceeded
}

// Failed logins count, others do not.
func ExampleNew_count() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(5))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := grpclimit.New(limiter, grpclimit.Options{
		Count: func(code int) bool { return codes.Code(code) == codes.Unauthenticated },
	})
	if err != nil {
		log.Fatal(err)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/shop.Accounts/Login"}
	login := func(_ context.Context, request any) (any, error) {
		if request != "secret" {
			return nil, status.Error(codes.Unauthenticated, "wrong password")
		}
		return "welcome", nil
	}
	for range 100 {
		if _, err := limit.Unary(context.Background(), "secret", info, login); err != nil {
			log.Fatal(err)
		}
	}
	for range 6 {
		_, err := limit.Unary(context.Background(), "guess", info, login)
		fmt.Println(status.Code(err))
	}
	// Output:
	// Unauthenticated
	// Unauthenticated
	// Unauthenticated
	// Unauthenticated
	// Unauthenticated
	// ResourceExhausted
}

// Health checks are not limited.
func ExampleNew_health() {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(1))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := grpclimit.New(limiter, grpclimit.Options{
		Skip: func(c *grpclimit.Call) bool {
			return strings.HasPrefix(c.FullMethod, "/grpc.health.v1.Health/")
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer := func(context.Context, any) (any, error) { return "yes", nil }
	for _, method := range []string{"/grpc.health.v1.Health/Check", "/shop.Carts/Get"} {
		for range 3 {
			info := &grpc.UnaryServerInfo{FullMethod: method}
			_, err := limit.Unary(context.Background(), nil, info, answer)
			fmt.Println(method, status.Code(err))
		}
	}
	// Output:
	// /grpc.health.v1.Health/Check OK
	// /grpc.health.v1.Health/Check OK
	// /grpc.health.v1.Health/Check OK
	// /shop.Carts/Get OK
	// /shop.Carts/Get ResourceExhausted
	// /shop.Carts/Get ResourceExhausted
}

func TestSnippets(t *testing.T) { snippets.Check(t, "../docs/grpc.md", "grpc", "example_test.go") }
