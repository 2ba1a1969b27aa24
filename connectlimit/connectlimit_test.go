package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/connectlimit"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/httplimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

const (
	say  = "/test.Echo/Say"
	chat = "/test.Echo/Chat"
)

type unary = func(context.Context, *connect.Request[text]) (*connect.Response[text], error)

func echo(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
	return connect.NewResponse(r.Msg), nil
}

// serve starts a server with an interceptor, and returns a client of each protocol.
func serve(
	t testing.TB, i connect.Interceptor, handler unary,
) map[string]*connect.Client[text, text] {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(say, connect.NewUnaryHandler(say, handler, connect.WithInterceptors(i)))
	mux.Handle(chat, connect.NewBidiStreamHandler(chat,
		func(_ context.Context, s *connect.BidiStream[text, text]) error {
			for {
				in, err := s.Receive()
				if err != nil {
					return nil //nolint:nilerr // the end of the stream
				}
				if err := s.Send(in); err != nil {
					return err
				}
			}
		}, connect.WithInterceptors(i)))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return map[string]*connect.Client[text, text]{
		"connect": connect.NewClient[text, text](server.Client(), server.URL+say,
			connect.WithInterceptors(i)),
		"gRPC": connect.NewClient[text, text](server.Client(), server.URL+say,
			connect.WithGRPC(), connect.WithInterceptors(i)),
		"gRPC-Web": connect.NewClient[text, text](server.Client(), server.URL+say,
			connect.WithGRPCWeb(), connect.WithInterceptors(i)),
		"stream": connect.NewClient[text, text](server.Client(), server.URL+chat,
			connect.WithGRPC(), connect.WithInterceptors(i)),
	}
}

func newInterceptor(
	t testing.TB, store headgate.Store, limit string, o connectlimit.Options,
) connect.Interceptor {
	t.Helper()
	l, err := headgate.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, l)
	if err != nil {
		t.Fatal(err)
	}
	i, err := connectlimit.New(limiter, o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func retry(err error) time.Duration {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return 0
	}
	for _, detail := range e.Details() {
		if m, err := detail.Value(); err == nil {
			if info, ok := m.(*errdetails.RetryInfo); ok {
				return info.GetRetryDelay().AsDuration()
			}
		}
	}
	return 0
}

func hello(t testing.TB) *connect.Request[text] {
	t.Helper()
	return connect.NewRequest(wrapperspb.String("a"))
}

// A client gets the fields that net/http sends, and a denial says when to retry, in each protocol.
func TestUnary(t *testing.T) {
	for _, protocol := range []string{"connect", "gRPC", "gRPC-Web"} {
		client := serve(t, newInterceptor(t, headgate.NewMemory(), "2/h", connectlimit.Options{}),
			echo)[protocol]
		for want := range 2 {
			r, err := client.CallUnary(t.Context(), hello(t))
			if err != nil {
				t.Fatal(protocol, err)
			}
			if got := r.Header()["X-Ratelimit-Remaining"]; !slices.Equal(got,
				[]string{fmt.Sprint(1 - want)}) {
				t.Errorf("%s: %q remain", protocol, got)
			}
		}
		_, err := client.CallUnary(t.Context(), hello(t))
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.Code() != connect.CodeResourceExhausted || retry(err) < 1790*time.Second ||
			retry(err) > 1800*time.Second {
			t.Fatalf("%s: %v, retry in %s", protocol, err, retry(err))
		}
		if len(e.Meta()["Retry-After"]) != 1 ||
			e.Meta().Get("Ratelimit-Policy") != `"2/h";q=2;w=3600` {
			t.Errorf("%s: %v", protocol, e.Meta())
		}
	}
}

// The client of a call that fails gets the fields. They are not in the error of the handler, which
// may be one for all calls.
func TestErrors(t *testing.T) {
	shared := connect.NewError(connect.CodeNotFound, errors.New("nothing"))
	for _, err := range []error{shared, errors.New("plain")} {
		fail := func(context.Context, *connect.Request[text]) (*connect.Response[text],
			error) {
			return nil, err
		}
		client := serve(t, newInterceptor(t, headgate.NewMemory(), "9/h", connectlimit.Options{}),
			fail)["connect"]
		var calls sync.WaitGroup
		for range 9 {
			calls.Go(func() {
				_, err := client.CallUnary(t.Context(), hello(t))
				if e, ok := errors.AsType[*connect.Error](err); !ok ||
					len(e.Meta()["X-Ratelimit-Remaining"]) != 1 {
					t.Errorf("%v, %v", err, e.Meta())
				}
			})
		}
		calls.Wait()
	}
	if len(shared.Meta()) > 0 {
		t.Errorf("the error of the handler has %v", shared.Meta())
	}
}

// chats begins a stream, and returns what remains and the error of the last of five messages.
func chats(t *testing.T, client *connect.Client[text, text]) (left string, err error) {
	t.Helper()
	stream := client.CallBidiStream(t.Context())
	for range 5 {
		if err = stream.Send(wrapperspb.String("a")); err == nil {
			_, err = stream.Receive()
		}
		if err != nil {
			_, err = stream.Receive()
			break
		}
	}
	left = stream.ResponseHeader().Get("X-Ratelimit-Remaining")
	_ = stream.CloseRequest()
	_, _ = stream.Receive() // its end, after which it is settled
	_ = stream.CloseResponse()
	return left, err
}

// A stream counts once, when it begins, and not if Count refunds it by its code.
func TestStream(t *testing.T) {
	client := func(o connectlimit.Options) *connect.Client[text, text] {
		return serve(t, newInterceptor(t, headgate.NewMemory(), "2/h", o), echo)["stream"]
	}
	all, failures := client(connectlimit.Options{}), client(connectlimit.Options{
		Count: func(code int) bool { return code != 0 },
	})
	for i := range 2 {
		if left, err := chats(t, all); err != nil || left != fmt.Sprint(1-i) {
			t.Errorf("stream %d: %v, %q remain", i, err, left)
		}
	}
	if _, err := chats(t, all); connect.CodeOf(err) != connect.CodeResourceExhausted ||
		retry(err) == 0 {
		t.Errorf("a third stream: %v", err)
	}
	for i := range 3 {
		if left, err := chats(t, failures); err != nil || left != "1" {
			t.Errorf("stream %d, without a failure: %v, %q remain", i, err, left)
		}
	}
}

type broken struct{ headgate.Store }

var errBroken = errors.New("the store is away")

func (broken) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errBroken
}

func (broken) TakeAll(context.Context, []headgate.Request, []headgate.Decision) error {
	return errBroken
}

// What does not pass has a code of its own, and its handler is not called.
func TestCodes(t *testing.T) {
	closed, err := fallback.New(broken{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	memory := headgate.NewMemory()
	ten := connectlimit.Options{Cost: func(*connectlimit.Call) int64 { return 10 }}
	denied := func(err *connect.Error) connectlimit.Options {
		o := ten
		o.Denied = func(*connectlimit.Call, []headgate.Decision) *connect.Error { return err }
		return o
	}
	shut := connectlimit.Options{WhenStoreFails: httplimit.Closed}
	skipped, byMessage := shut, connectlimit.Options{}
	skipped.Skip = func(c *connectlimit.Call) bool { return c.Spec.Procedure == say }
	byMessage.Cost = func(c *connectlimit.Call) int64 {
		return int64(len(c.Message.(*text).GetValue()))
	}
	mine := connect.NewError(connect.CodeAborted, errors.New("mine"))
	for name, c := range map[string]struct {
		store   headgate.Store
		options connectlimit.Options
		code    connect.Code
	}{
		"passes":                {memory, connectlimit.Options{}, 0},
		"cost of the message":   {memory, byMessage, 0},
		"never fits":            {memory, ten, connect.CodeResourceExhausted},
		"store away, open":      {broken{}, connectlimit.Options{}, 0},
		"store away, closed":    {broken{}, shut, connect.CodeUnavailable},
		"fallback closed":       {closed, connectlimit.Options{}, connect.CodeUnavailable},
		"skipped":               {broken{}, skipped, 0},
		"denied by a function":  {memory, denied(mine), connect.CodeAborted},
		"denied by no function": {memory, denied(nil), connect.CodeResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			counted := func(
				ctx context.Context, r *connect.Request[text],
			) (*connect.Response[text], error) {
				calls.Add(1)
				return echo(ctx, r)
			}
			i := newInterceptor(t, c.store, "9/s", c.options)
			_, err := serve(t, i, counted)["connect"].CallUnary(t.Context(), hello(t))
			if err == nil != (c.code == 0) || err != nil && connect.CodeOf(err) != c.code ||
				retry(err) > 0 || (calls.Load() == 1) != (c.code == 0) {
				t.Errorf("%v, %d calls", err, calls.Load())
			}
		})
	}
}

// The keys are those of httplimit.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key  httplimit.KeyFunc
		want string
	}{
		{httplimit.RemoteAddress, "ip:127.0.0.1"},
		{httplimit.Header("X-Api-Key"), "header:k"},
		{httplimit.Path(), "path:" + say},
		{httplimit.Header("Host"), ""},
	} {
		var got atomic.Value
		of := connectlimit.Key(c.key)
		client := serve(t,
			newInterceptor(t, headgate.NewMemory(), "9/s",
				connectlimit.Options{Key: func(c *connectlimit.Call) string {
					got.Store(of(c))
					return of(c)
				}}), echo)["connect"]
		r := hello(t)
		r.Header().Set("X-Api-Key", "k")
		if _, err := client.CallUnary(t.Context(), r); err != nil || got.Load() != c.want {
			t.Errorf("key %q, want %q: %v", got.Load(), c.want, err)
		}
	}
}

// Parallel calls never get more than the limit, and those that do not count are refunded.
func TestCount(t *testing.T) {
	var in atomic.Int64
	client := serve(t, newInterceptor(t, headgate.NewMemory(), "5/h", connectlimit.Options{
		Count: func(code int) bool { return connect.Code(code) == connect.CodeUnauthenticated },
	}), func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		in.Add(1)
		if r.Msg.GetValue() == "a" {
			return echo(ctx, r)
		}
		return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("wrong"))
	})["connect"]
	for range 20 {
		if _, err := client.CallUnary(t.Context(), hello(t)); err != nil {
			t.Fatal(err)
		}
	}
	in.Store(0)
	var wrong sync.WaitGroup
	for range 100 {
		wrong.Go(func() {
			_, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("wrong")))
			if e, ok := errors.AsType[*connect.Error](err); !ok ||
				e.Meta().Get("Ratelimit-Policy") == "" {
				t.Errorf("%v without fields", err)
			}
		})
	}
	wrong.Wait()
	if got := in.Load(); got != 5 {
		t.Errorf("%d guesses reached the handler; want 5", got)
	}
}

func TestWrongOptions(t *testing.T) {
	if _, err := connectlimit.New(nil, connectlimit.Options{}); err == nil ||
		err.Error() != "headgate: limiter is nil; want one made by headgate.NewLimiter" {
		t.Error(err)
	}
}
