package grpclimit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/grpclimit"
	"github.com/headgate/headgate/httplimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func newClient(
	t testing.TB, l *headgate.Limiter, o grpclimit.ClientOptions,
) *grpclimit.ClientInterceptors {
	t.Helper()
	c, err := grpclimit.NewClient(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// exhausted is what a server answers that asks for a pause.
func exhausted(pause time.Duration) error {
	s, err := status.New(codes.ResourceExhausted,
		"later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(pause)})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// caller calls a method over an interceptor, without a network, and notes when it was sent.
type caller struct {
	client *grpclimit.ClientInterceptors
	conn   *grpc.ClientConn
	answer error
	start  time.Time

	mu   sync.Mutex
	sent []time.Duration
}

func (c *caller) call(ctx context.Context) error {
	return c.client.Unary(ctx, say, nil, nil, c.conn,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sent = append(c.sent, time.Since(c.start))
			return c.answer
		})
}

// inBubble runs test with a caller in a bubble of time.
func inBubble(
	t *testing.T, limit string, o grpclimit.ClientOptions, test func(*testing.T, *caller),
) {
	conn := dial(t, "passthrough:///api")
	synctest.Test(t, func(t *testing.T) {
		test(t, &caller{client: newClient(t, newLimiter(t, headgate.NewMemory(), limit), o),
			conn: conn, start: time.Now()})
	})
}

// Calls are sent at the rate of the limit.
func TestCallsWaitTheirTurn(t *testing.T) {
	inBubble(t, "1/s", grpclimit.ClientOptions{}, func(t *testing.T, c *caller) {
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := c.call(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i, at := range c.sent {
			if at.Round(time.Millisecond) != time.Duration(i)*time.Second {
				t.Errorf("call %d is sent after %s", i, at)
			}
		}
	})
}

// A pause without a RetryInfo, or a shorter MaxPause.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		answer error
		max    time.Duration
		want   time.Duration
	}{
		{nil, 0, 0},
		{status.Error(codes.ResourceExhausted, "message larger than max"), 0, 0},
		{exhausted(-time.Second), 0, 0},
		{exhausted(time.Minute), 0, time.Minute},
		{exhausted(time.Minute), time.Second, time.Second},
		{exhausted(48 * time.Hour), 0, time.Hour},
		{errors.New("no status"), 0, 0},
	} {
		var seen time.Duration
		o := grpclimit.ClientOptions{MaxPause: c.max,
			Observe: func(_ string, pause time.Duration, _ error) { seen = pause }}
		inBubble(t, "100/s", o, func(t *testing.T, calls *caller) {
			calls.answer = c.answer
			if err := calls.call(t.Context()); !errors.Is(err, c.answer) {
				t.Errorf("%v; want %v", err, c.answer)
			}
			calls.answer = nil
			if err := calls.call(t.Context()); err != nil ||
				calls.sent[1].Round(time.Millisecond) != c.want || seen != c.want {
				t.Errorf("%v: sent after %s, pause of %s; want %s", c.answer, calls.sent[1], seen,
					c.want)
			}
		})
	}
}

// A call that cannot be sent in time fails at once, and charges nothing.
func TestDeadline(t *testing.T) {
	inBubble(t, "1/m", grpclimit.ClientOptions{}, func(t *testing.T, c *caller) {
		if err := c.call(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.call(ctx); status.Code(err) != codes.DeadlineExceeded ||
			time.Since(c.start) > 0 {
			t.Errorf("%v after %s", err, time.Since(c.start))
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if err := c.call(ctx); status.Code(err) != codes.Canceled ||
			time.Since(c.start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(c.start))
		}
		if err := c.call(t.Context()); err != nil || c.sent[1].Round(time.Second) != time.Minute {
			t.Errorf("%v, sent after %v", err, c.sent)
		}
	})
}

// While the store is away, calls fail, or pass with Open under the pauses of this process.
func TestClientWithoutStore(t *testing.T) {
	conn := dial(t, "passthrough:///api")
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, broken{}, "1/s")
		c := &caller{client: newClient(t, l, grpclimit.ClientOptions{}), conn: conn}
		if err := c.call(t.Context()); status.Code(err) != codes.Unavailable || len(c.sent) != 0 {
			t.Errorf("%v, sent %d", err, len(c.sent))
		}
		var failures int
		c = &caller{conn: conn, start: time.Now(), answer: exhausted(time.Minute),
			client: newClient(t, l, grpclimit.ClientOptions{
				WhenStoreFails: httplimit.Open,
				Observe:        func(string, time.Duration, error) { failures++ },
			})}
		for range 2 {
			if err := c.call(t.Context()); status.Code(err) != codes.ResourceExhausted {
				t.Error(err)
			}
		}
		if c.sent[1].Round(time.Millisecond) != time.Minute || failures == 0 {
			t.Errorf("sent after %v, %d errors seen", c.sent, failures)
		}
	})
}

// A cost below 0 counts as 1, and a call of cost 0 does not wait.
func TestCostOfCalls(t *testing.T) {
	for cost, want := range map[int64]time.Duration{-1: time.Second, 0: 0} {
		o := grpclimit.ClientOptions{Cost: func(string, any) int64 { return cost }}
		inBubble(t, "1/s", o, func(t *testing.T, c *caller) {
			for range 2 {
				if err := c.call(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if waited := time.Since(c.start); waited != want {
				t.Errorf("two calls of cost %d took %s, want %s", cost, waited, want)
			}
		})
	}
}

// The status of a stream asks for a pause, too.
func TestStreamPauses(t *testing.T) {
	var pause time.Duration
	client := newClient(t, newLimiter(t, headgate.NewMemory(), "100/s"), grpclimit.ClientOptions{
		Observe: func(_ string, d time.Duration, _ error) { pause = d },
	})
	address := serve(t, &echo{chat: func(grpc.ServerStream) error { return exhausted(time.Hour) }})
	conn := dial(t, address, grpc.WithChainStreamInterceptor(client.Stream))
	desc := &grpc.StreamDesc{ServerStreams: true}
	stream, err := conn.NewStream(t.Context(), desc, chat)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(text)); status.Code(err) != codes.ResourceExhausted ||
		pause != time.Hour {
		t.Errorf("%v, a pause of %s", err, pause)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := conn.NewStream(ctx, desc, chat); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v during the pause", err)
	}
}

// Calls that share a slice of options keep their own ends.
func TestStreamsShareOptions(t *testing.T) {
	var paused []string
	client := newClient(t, newLimiter(t, headgate.NewMemory(), "100/s"), grpclimit.ClientOptions{
		Key:     func(_ context.Context, _, method string) string { return method },
		Observe: func(method string, _ time.Duration, _ error) { paused = append(paused, method) },
	})
	conn := dial(t, serve(t, &echo{}))
	var ends []grpc.CallOption
	streamer := func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
		options ...grpc.CallOption) (grpc.ClientStream, error) {
		ends = append(ends, options...)
		return struct{ grpc.ClientStream }{}, nil
	}
	shared := make([]grpc.CallOption, 0, 1)
	for _, method := range []string{"/a", "/b"} {
		if _, err := client.Stream(t.Context(), &grpc.StreamDesc{}, conn, method, streamer,
			shared...); err != nil {
			t.Fatal(err)
		}
	}
	if options := shared[:1]; options[0] != nil {
		t.Error("an option was written into the shared slice")
	}
	for _, end := range ends {
		end.(grpc.OnFinishCallOption).OnFinish(exhausted(time.Hour))
	}
	if !slices.Equal(paused, []string{"/a", "/b"}) {
		t.Errorf("paused %q", paused)
	}
}
