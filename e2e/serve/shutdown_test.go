package serve

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate/headgate/internal/redistest"
)

// At SIGTERM the server is not ready at once, answers what it has accepted, though its Redis is
// slow, and exits with 0 within its grace.
//
// The test knows when it sent a request, not when the server read it: net/http closes a connection
// on which an unread request waits. On a busy machine the server may stand still for longer than
// the margin, so there are three tries. A server that loses what it has read does so in each.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	for range 2 {
		lost := shutDownUnderLoad(t)
		if len(lost) == 0 {
			return
		}
		t.Logf("again, because the machine may have stood still: %q", lost)
	}
	if lost := shutDownUnderLoad(t); len(lost) != 0 {
		t.Errorf("lost: %q", lost)
	}
}

// shutDownUnderLoad ends a server under load, and returns the requests that it lost.
func shutDownUnderLoad(t *testing.T) (lost []string) {
	t.Helper()
	slow := redistest.StartProxy(t, redistest.Start(t).Addr)
	s := serve(t, rules("closed", 2000), "--store", "redis://"+slow.Addr, "--grace", "5s")
	c := newClient(t, s)
	until(t, "connected", func() bool { return c.limit(t.Context(), 0, "wide").granted })
	slow.Delay(60 * time.Millisecond) // so that requests are under way at the end
	health := healthpb.NewHealthClient(c.connections[0])
	watch, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const serving = healthpb.HealthCheckResponse_SERVING
	if ready, err := watch.Recv(); err != nil || ready.GetStatus() != serving {
		t.Fatalf("%v, %v; want SERVING", ready, err)
	}
	var late lateness
	l := start([]*client{c}, pick(300, 2000), &late, ask)
	l.lasts(t.Context(), pick(400*time.Millisecond, 3*time.Second))
	term := l.now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status, err := watch.Recv()
	if err == nil && status.GetStatus() == serving {
		t.Errorf("health is %v after SIGTERM", status)
	}
	unready := l.now() - term
	select {
	case <-s.ended:
	case <-time.After(5*time.Second + patience):
		t.Fatal("the server does not end")
	}
	ended := l.now() - term
	l.lasts(t.Context(), 50*time.Millisecond)
	underWay, refused := 0, 0
	for _, r := range l.stop() {
		sent := r.start < term-10*time.Millisecond-late.value()
		if r.start < term && r.end > term && r.err == nil {
			underWay++
		}
		switch {
		case r.err == nil:
		case sent:
			lost = append(lost, fmt.Sprintf("sent %v before SIGTERM, after %v: %v",
				term-r.start, r.end-r.start, r.err))
		default:
			refused++
			if !rejected(r.err) {
				t.Errorf("sent %v after SIGTERM: %v", r.start-term, r.err)
			}
		}
	}
	t.Logf("not ready after %v, ended after %v, %d requests under way, %d lost, %d refused",
		unready, ended, underWay, len(lost), refused)
	if underWay == 0 || refused == 0 {
		t.Error("no request was under way, or none came too late")
	}
	if ended > 5*time.Second {
		t.Errorf("the end took %v; want at most the grace of 5s", ended)
	}
	return lost
}

// rejected reports whether err says that a request was not accepted: the server was gone, or
// closed a connection before it read from it.
func rejected(err error) bool {
	for _, text := range []string{
		"connection refused", "connection reset", "EOF", "server closed idle connection",
		"broken pipe", "Unavailable",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// During the drain delay, the server is not ready, and serves.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	s := serve(t, rules("closed", 2000), "--drain-delay", "2s")
	c := newClient(t, s)
	until(t, "connected", func() bool { return c.limit(t.Context(), 0, "wide").granted })
	watch, err := healthpb.NewHealthClient(c.connections[0]).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if now, err := watch.Recv(); now.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v, %v; want NOT_SERVING", now, err)
	}
	if !newClient(t, s).limit(t.Context(), 0, "wide").granted {
		t.Error("a new connection is not served during the delay")
	}
	<-s.ended
}
