package grpcserver

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// blocked is a Decider that says when it has begun, and ends when it may.
type blocked struct{ begun, end chan struct{} }

func newBlocked() blocked {
	return blocked{make(chan struct{}, 10_000), make(chan struct{})}
}

func (b blocked) Decide(ctx context.Context, r *envoy.Request, out *envoy.Response) error {
	b.begun <- struct{}{}
	select {
	case <-b.end:
		return echo(ctx, r, out)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestGracefulStopAnswersWhatIsInFlight(t *testing.T) {
	b := newBlocked()
	s, address := serve(t, b, Options{})
	conn := dial(t, address)
	health := grpc_health_v1.NewHealthClient(conn)
	watch, err := health.Watch(t.Context(), new(grpc_health_v1.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	const inFlight = 50
	answered := make(chan error, inFlight)
	for range inFlight {
		go func() {
			_, err := ask(t, conn, "a", "b")
			answered <- err
		}()
	}
	for range inFlight {
		<-b.begun
	}
	stopped := make(chan error)
	go func() { stopped <- s.GracefulStop(t.Context()) }()
	<-s.stopping.Done()
	if _, err := watch.Recv(); err == nil {
		_, err = watch.Recv()
		if status.Code(err) != codes.Canceled {
			t.Errorf("the watched health: %v, want the end of the stream", err)
		}
	}
	close(b.end)
	for range inFlight {
		if err := <-answered; err != nil {
			t.Errorf("in flight: %v", err)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if c, err := net.DialTimeout("tcp", address, time.Second); err == nil { //nolint:noctx // short
		c.Close()
		t.Error("a connection was taken after the stop")
	}
}

func TestGracefulStopEndsWithItsContext(t *testing.T) {
	b := newBlocked()
	s, address := serve(t, b, Options{})
	silent, err := net.Dial("tcp", address) //nolint:noctx // it sends nothing, ever
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow, err := net.Dial("tcp", address) //nolint:noctx // it sends a part of its preface only
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write([]byte("PRI *")); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, address)
	answered := make(chan error, 1)
	go func() {
		_, err := ask(t, conn)
		answered <- err
	}()
	<-b.begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := s.GracefulStop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want an error of the context", err)
	}
	if took := time.Since(start); took > handshakeTimeout/2 {
		t.Errorf("it took %v", took)
	}
	if code := status.Code(<-answered); code != codes.Unavailable && code != codes.Canceled {
		t.Errorf("what was cut off ended with %v", code)
	}
}
