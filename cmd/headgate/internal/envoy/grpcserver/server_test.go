package grpcserver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/listen"
)

type deciderFunc func(context.Context, *envoy.Request, *envoy.Response) error

// A panic is the error of its request, and not the end of the process.
func TestPanicIsInternal(t *testing.T) {
	values := make(chan any, 2)
	decider := deciderFunc(func(ctx context.Context, r *envoy.Request, out *envoy.Response) error {
		if r.Domain == "panic" {
			panic("at a request")
		}
		return echo(ctx, r, out)
	})
	s, address := serve(t, decider, Options{Panicked: func(value any) { values <- value }})
	client := rls.NewRateLimitServiceClient(dial(t, address))
	for domain, want := range map[string]codes.Code{"panic": codes.Internal, "d": codes.OK} {
		_, err := client.ShouldRateLimit(t.Context(), generatedRequest(domain, "a", "b"))
		if got := status.Code(err); got != want {
			t.Errorf("%s: %v; want %v", domain, err, want)
		}
	}
	handle := func(any, grpc.ServerStream) error { panic("at a stream") }
	if err := s.endWithServer(nil, boundStream{ctx: t.Context()}, nil, handle); status.Code(err) !=
		codes.Internal {
		t.Errorf("a stream: %v", err)
	}
	if a, b := <-values, <-values; a != "at a request" || b != "at a stream" {
		t.Errorf("the panics are %v and %v", a, b)
	}
}

func (f deciderFunc) Decide(ctx context.Context, r *envoy.Request, out *envoy.Response) error {
	return f(ctx, r, out)
}

// echo answers each descriptor with a limit that is named after its entries.
func echo(_ context.Context, request *envoy.Request, response *envoy.Response) error {
	response.Code = envoy.OK
	for _, d := range request.Descriptors {
		var name strings.Builder
		name.WriteString(strings.Clone(request.Domain))
		for _, e := range d.Entries {
			name.WriteString("/" + e.Key + "=" + e.Value)
		}
		response.Statuses = append(response.Statuses, envoy.Status{
			Code: envoy.OK, HasLimit: true, Remaining: 4, Reset: 1500 * time.Millisecond,
			Limit: envoy.Limit{RequestsPerUnit: 5, Unit: envoy.Minute, Multiplier: 15, Name: name.String()},
		})
	}
	return nil
}

// serve starts a server on a port of its own and returns it and its address.
func serve(t testing.TB, d Decider, o Options) (*Server, string) {
	t.Helper()
	l, err := listen.On(t.Context(), "--grpc", "127.0.0.1:0",
		listen.Bounds{Connections: 10_000, Quiet: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s := New(d, o)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.GracefulStop(ctx) //nolint:errcheck // what is in flight is cut off
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func generatedRequest(domain string, pairs ...string) *rls.RateLimitRequest {
	m := &rls.RateLimitRequest{Domain: domain}
	for i := 0; i < len(pairs); i += 2 {
		m.Descriptors = append(m.Descriptors, &common.RateLimitDescriptor{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: pairs[i], Value: pairs[i+1]}},
		})
	}
	return m
}

// ask calls a server with the generated client.
func ask(
	t testing.TB, conn *grpc.ClientConn, pairs ...string,
) (*rls.RateLimitResponse, error) {
	t.Helper()
	client := rls.NewRateLimitServiceClient(conn)
	return client.ShouldRateLimit(t.Context(), generatedRequest("edge", pairs...))
}

func TestGeneratedClient(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{})
	got, err := ask(t, dial(t, address), "a", "b", "c", "d")
	if err != nil {
		t.Fatal(err)
	}
	want := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	for _, name := range []string{"edge/a=b", "edge/c=d"} {
		want.Statuses = append(want.Statuses, &rls.RateLimitResponse_DescriptorStatus{
			Code: rls.RateLimitResponse_OK,
			CurrentLimit: &rls.RateLimitResponse_RateLimit{
				Name: name, RequestsPerUnit: 5, Unit: rls.RateLimitResponse_RateLimit_MINUTE,
				UnitMultiplier: wrapperspb.UInt32(15),
			},
			LimitRemaining:     4,
			DurationUntilReset: durationpb.New(1500 * time.Millisecond),
		})
	}
	if !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Requests that share pooled memory keep apart: each gets the answer to what it sent.
func TestManyRequestsAtOnce(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{})
	var callers sync.WaitGroup
	for caller := range 16 {
		conn := dial(t, address)
		callers.Go(func() {
			for i := range 100 {
				value := strings.Repeat(string(rune('a'+caller)), 1+i*37%3000)
				got, err := ask(t, conn, "k", value, "k2", value)
				if err != nil {
					t.Error(err)
					return
				}
				name := got.GetStatuses()[1].GetCurrentLimit().GetName()
				if name != "edge/k2="+value {
					t.Errorf("%.40s..., want %.40s...", name, value)
				}
			}
		})
	}
	callers.Wait()
}

func TestErrorsAreOfTheRequestOnly(t *testing.T) {
	failures := map[string]error{
		"down":    errors.New("redis: connection refused"),
		"invalid": &headgate.InvalidError{Field: "key", Value: "x", Want: "y"},
		"late":    context.DeadlineExceeded,
		"status":  status.Error(codes.Unavailable, "draining"),
	}
	failing := func(ctx context.Context, r *envoy.Request, out *envoy.Response) error {
		if err := failures[r.Domain]; err != nil {
			return err
		}
		return echo(ctx, r, out)
	}
	_, address := serve(t, deciderFunc(failing), Options{})
	conn := dial(t, address)
	override := generatedRequest("edge", "a", "b")
	override.Descriptors[0].Limit = new(common.RateLimitDescriptor_RateLimitOverride)
	long := generatedRequest(strings.Repeat("x", maxMessage))
	hits := generatedRequest("edge", "a", "b")
	hits.Descriptors[0].HitsAddend = wrapperspb.UInt64(1<<64 - 1)
	for _, test := range []struct {
		request proto.Message
		code    codes.Code
		text    string
	}{
		{override, codes.InvalidArgument, "descriptors[0].limit.unit is 0"},
		{hits, codes.InvalidArgument, "descriptors[0].hits_addend is 18446744073709551615"},
		{wrapperspb.UInt64(5), codes.OK, ""},           // field 1 has another type and is skipped
		{wrapperspb.Bytes([]byte{0xff}), codes.OK, ""}, // any bytes
		{generatedRequest("down"), codes.Unknown, "redis: connection refused"},
		{generatedRequest("invalid"), codes.InvalidArgument, "headgate: key is x; want y"},
		{generatedRequest("late"), codes.DeadlineExceeded, "context deadline exceeded"},
		{generatedRequest("status"), codes.Unavailable, "draining"},
		{long, codes.ResourceExhausted, "larger than max"},
	} {
		err := conn.Invoke(t.Context(), method, test.request, new(rls.RateLimitResponse))
		text := status.Convert(err).Message()
		if status.Code(err) != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%.60v: %v, want %v: %s", test.request, err, test.code, test.text)
		}
	}
	if _, err := ask(t, conn, "a", "b"); err != nil {
		t.Errorf("after the errors: %v", err)
	}
	other := strings.TrimSuffix(method, "ShouldRateLimit") + "Other"
	err := conn.Invoke(t.Context(), other, hits, new(rls.RateLimitResponse))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("another method: %v", err)
	}
}

func TestHealth(t *testing.T) {
	s, address := serve(t, deciderFunc(echo), Options{})
	client := grpc_health_v1.NewHealthClient(dial(t, address))
	check := func(service string) string {
		t.Helper()
		r, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			return status.Code(err).String()
		}
		return r.GetStatus().String()
	}
	all := func() [3]string { return [3]string{check(""), check("ratelimit"), check("other")} }
	if got := all(); got != [3]string{"NOT_SERVING", "NOT_SERVING", "NotFound"} {
		t.Errorf("at first: %v", got)
	}
	s.SetReady(true)
	if got := all(); got != [3]string{"SERVING", "SERVING", "NotFound"} {
		t.Errorf("ready: %v", got)
	}
	s.SetReady(false)
	if got := all(); got != [3]string{"NOT_SERVING", "NOT_SERVING", "NotFound"} {
		t.Errorf("no longer ready: %v", got)
	}
}

func TestRoomForARequestIsNotKept(t *testing.T) {
	var c call
	for range maxKept + 1 {
		c.request.Descriptors = append(c.request.Descriptors, envoy.Descriptor{})
	}
	for range 100 {
		c.release()
	}
	for range 100 {
		if got := calls.Get().(*call); got == &c {
			t.Fatal("a large call was put back")
		}
	}
}

// While there is room, a connection may hold more than its share.
func TestShareOfWhatIsHeld(t *testing.T) {
	all := watching{count: func() int { return 4 }, held: new(atomic.Int64)}
	one, other := &watched{of: all}, &watched{of: all}
	if !one.hold(maxHeld/2) || !other.hold(maxHeld/4) {
		t.Error("a connection is refused while there is room")
	}
	if one.hold(maxHeld / 2) {
		t.Error("a connection holds more than its share when there is no room")
	}
	if !one.hold(-maxHeld) || !other.hold(maxHeld/4) {
		t.Error("a connection is refused after another has released what it held")
	}
}
