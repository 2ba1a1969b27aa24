package grpclimit_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/grpclimit"
	"github.com/headgate/headgate/httplimit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A client gets the fields that net/http sends, and a denial says when to retry.
func TestUnary(t *testing.T) {
	s := newServer(t, newLimiter(t, headgate.NewMemory(), "2/h", "day=9/d fixed-window"),
		grpclimit.Options{})
	conn := dial(t, serve(t, &echo{}, limited(s)...))
	for i, want := range []string{"1", "0", "0"} {
		header, err := call(t.Context(), conn)
		if got := header.Get("x-ratelimit-remaining"); !slices.Equal(got, []string{want}) {
			t.Errorf("call %d: %v remain; want %s", i, got, want)
		}
		if got := header.Get("ratelimit-policy"); !slices.Equal(got,
			[]string{`"2/h";q=2;w=3600, "day";q=9;w=86400`}) {
			t.Errorf("call %d: policy %q", i, got)
		}
		if i < 2 {
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			continue
		}
		if wait := retry(err); status.Code(err) != codes.ResourceExhausted ||
			wait < 1790*time.Second || wait > 1800*time.Second ||
			!strings.HasPrefix(status.Convert(err).Message(),
				"The limit 2/h is exceeded. Retry in 1") {
			t.Errorf("%v, retry in %s", err, wait)
		}
		if got := header.Get("retry-after"); len(got) != 1 {
			t.Errorf("retry-after %q", got)
		}
	}
}

// The keys are those of httplimit: metadata are the fields.
func TestKeys(t *testing.T) {
	address, err := httplimit.ClientAddress(httplimit.AddressOptions{
		Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var key atomic.Value
	for _, c := range []struct {
		key   httplimit.KeyFunc
		pairs []string
		want  string
	}{
		{httplimit.RemoteAddress, []string{"x-forwarded-for", "192.0.2.1"}, "ip:127.0.0.1"},
		{address, []string{"x-forwarded-for", "198.51.100.1, 192.0.2.1"}, "ip:192.0.2.1"},
		{httplimit.Header("X-Api-Key"), []string{"x-api-key", "k"}, "header:k"},
		{httplimit.Header("X-Api-Key"), []string{"x-api-key", "k", "x-api-key", "l"},
			"header:k"},
		{httplimit.Header("X-Api-Key"), nil, ""},
		{httplimit.Cookie("s"), []string{"cookie", "s=1"}, "cookie:1"},
		{httplimit.Path(), nil, "path:" + say},
		{httplimit.Header("Host"), nil, "header:example.com"},
		{httplimit.Join(httplimit.Path(), httplimit.Header("X-Api-Key")),
			[]string{"x-api-key", "k"}, "path:" + say + "|header:k"},
	} {
		of := grpclimit.Key(c.key)
		s := newServer(t, newLimiter(t, headgate.NewMemory(), "9/s"),
			grpclimit.Options{Key: func(c *grpclimit.Call) string {
				key.Store(of(c))
				return of(c)
			}})
		conn := dial(t, serve(t, &echo{}, limited(s)...), grpc.WithAuthority("example.com"))
		if _, err := call(t.Context(), conn, c.pairs...); err != nil || key.Load() != c.want {
			t.Errorf("%v: key %q, want %q: %v", c.pairs, key.Load(), c.want, err)
		}
	}
}

// What does not pass has a status of its own, and its handler is not called.
func TestStatus(t *testing.T) {
	closed, err := fallback.New(broken{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	memory := headgate.NewMemory()
	cost := func(n int64) grpclimit.Options {
		return grpclimit.Options{Cost: func(*grpclimit.Call) int64 { return n }}
	}
	denied := func(err error) grpclimit.Options {
		o := cost(10)
		o.Denied = func(*grpclimit.Call, []headgate.Decision) error { return err }
		return o
	}
	shadow, skipped, byMessage := cost(10), grpclimit.Options{}, grpclimit.Options{}
	shadow.Shadow, shadow.Observe = true, func(*grpclimit.Call, headgate.Decision, error) {}
	mine := status.Error(codes.Aborted, "mine")
	shut := grpclimit.Options{WhenStoreFails: httplimit.Closed}
	skipped.WhenStoreFails = httplimit.Closed
	skipped.Skip = func(c *grpclimit.Call) bool { return c.FullMethod == say }
	byMessage.Cost = func(c *grpclimit.Call) int64 {
		return int64(len(c.Message.(*text).GetValue()))
	}
	for name, c := range map[string]struct {
		store   headgate.Store
		options grpclimit.Options
		code    codes.Code
	}{
		"passes":                {memory, grpclimit.Options{}, codes.OK},
		"cost 0":                {memory, cost(0), codes.OK},
		"cost of the message":   {memory, byMessage, codes.OK},
		"never fits":            {memory, cost(10), codes.ResourceExhausted},
		"store away, open":      {broken{}, grpclimit.Options{}, codes.OK},
		"store away, closed":    {broken{}, shut, codes.Unavailable},
		"fallback closed":       {closed, grpclimit.Options{}, codes.Unavailable},
		"shadow":                {memory, shadow, codes.OK},
		"skipped":               {broken{}, skipped, codes.OK},
		"denied by a function":  {memory, denied(mine), codes.Aborted},
		"denied by no function": {memory, denied(nil), codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			e := &echo{say: func(_ context.Context, in *text) (*text, error) {
				calls.Add(1)
				return in, nil
			}}
			s := newServer(t, newLimiter(t, c.store, "9/s"), c.options)
			_, err := call(t.Context(), dial(t, serve(t, e, limited(s)...)))
			if status.Code(err) != c.code || retry(err) > 0 ||
				(calls.Load() == 1) != (c.code == codes.OK) {
				t.Errorf("%v, retry in %s, %d calls", err, retry(err), calls.Load())
			}
		})
	}
}

// Parallel calls never get more than the limit, and those that do not count are refunded.
func TestCount(t *testing.T) {
	var in atomic.Int64
	e := &echo{say: func(_ context.Context, text *text) (*text, error) {
		in.Add(1)
		switch text.GetValue() {
		case "wrong":
			return nil, status.Error(codes.Unauthenticated, "wrong")
		case "late":
			return nil, context.DeadlineExceeded
		case "panic":
			panic("handler")
		}
		return text, nil
	}}
	s := newServer(t, newLimiter(t, headgate.NewMemory(), "5/h"), grpclimit.Options{
		Count: func(code int) bool {
			return codes.Code(code) != codes.OK &&
				codes.Code(code) != codes.DeadlineExceeded
		},
	})
	recovers := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo,
		h grpc.UnaryHandler) (out any, err error) {
		defer func() {
			if recover() != nil {
				err = status.Error(codes.Internal, "panic")
			}
		}()
		return h(ctx, m)
	}
	conn := dial(t, serve(t, e, grpc.ChainUnaryInterceptor(recovers, s.Unary)))
	send := func(word string) codes.Code {
		return status.Code(conn.Invoke(t.Context(), say, wrapperspb.String(word), new(text)))
	}
	for range 20 {
		if got := send("right"); got != codes.OK {
			t.Fatalf("a right call: %s", got)
		}
		if got := send("late"); got != codes.DeadlineExceeded {
			t.Fatalf("a late call: %s", got)
		}
	}
	if got := send("panic"); got != codes.Internal {
		t.Errorf("a panic: %s", got)
	}
	in.Store(0)
	var wrong sync.WaitGroup
	for range 100 {
		wrong.Go(func() { send("wrong") })
	}
	wrong.Wait()
	if got := in.Load(); got != 4 { // and the panic, which stays charged
		t.Errorf("%d guesses reached the handler; want 4", got)
	}
	if got := send("right"); got != codes.ResourceExhausted {
		t.Errorf("after the guesses: %s", got)
	}
}

// Stream limits how many streams begin, and Messages what they carry.
func TestStreams(t *testing.T) {
	l := newLimiter(t, headgate.NewMemory(), "3/h")
	s := newServer(t, l, grpclimit.Options{})
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	exchange := func(conn *grpc.ClientConn, n int) (received int, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := conn.NewStream(ctx, desc, chat)
		if err != nil {
			return 0, err
		}
		for range n {
			if err := stream.SendMsg(wrapperspb.String("a")); err != nil {
				return received, stream.RecvMsg(new(text))
			}
			if err := stream.RecvMsg(new(text)); err != nil {
				return received, err
			}
			received++
		}
		return received, nil
	}
	conn := dial(t, serve(t, &echo{}, limited(s)...))
	for i := range 4 {
		n, err := exchange(conn, 10)
		if i < 3 && (n != 10 || err != nil) || i == 3 &&
			(n != 0 || status.Code(err) != codes.ResourceExhausted || retry(err) == 0) {
			t.Errorf("stream %d: %d messages, %v", i, n, err)
		}
	}
	if err := l.Reset(t.Context(), "ip:127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	conn = dial(t, serve(t, &echo{}, grpc.ChainStreamInterceptor(s.Messages)))
	if n, err := exchange(conn, 2); n != 2 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
	if n, err := exchange(conn, 2); n != 1 || status.Code(err) != codes.ResourceExhausted ||
		retry(err) == 0 {
		t.Errorf("%d messages, %v", n, err)
	}
}

// A call that its client gave up is not served uncharged while the store is away.
func TestCallThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newServer(t, newLimiter(t, broken{}, "1/s"), grpclimit.Options{})
	_, err := s.Unary(ctx, wrapperspb.String("a"), &grpc.UnaryServerInfo{FullMethod: say},
		func(context.Context, any) (any, error) {
			t.Error("the handler was called")
			return new(text), nil
		})
	if status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
}

func TestWrongOptions(t *testing.T) {
	_, server := grpclimit.New(nil, grpclimit.Options{})
	_, client := grpclimit.NewClient(nil, grpclimit.ClientOptions{})
	l := newLimiter(t, headgate.NewMemory(), "1/s")
	_, mode := grpclimit.NewClient(l, grpclimit.ClientOptions{WhenStoreFails: 3})
	_, pause := grpclimit.NewClient(l, grpclimit.ClientOptions{MaxPause: -time.Second})
	const none = "limiter is nil; want one made by headgate.NewLimiter"
	for err, want := range map[error]string{
		server: none, client: none,
		mode:  "WhenStoreFails is 3; want Closed or Open",
		pause: "MaxPause is -1s; want more than 0 and at most a year, or 0 for an hour",
	} {
		if err == nil || err.Error() != "headgate: "+want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
