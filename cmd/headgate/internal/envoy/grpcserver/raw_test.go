package grpcserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// raw is a client that writes any frame, also such as no client should.
type raw struct {
	t      testing.TB
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	fields *hpack.Encoder
}

func dialRaw(t testing.TB, address string) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", address) //nolint:noctx // it returns at once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	r := &raw{t: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	r.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.fields = hpack.NewEncoder(&r.block)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	r.do(r.framer.WriteSettings())
	return r
}

func (r *raw) do(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// headers opens a stream with the fields of a rate limit request, and more of them.
func (r *raw) headers(stream uint32, more ...string) {
	r.t.Helper()
	r.do(r.open(stream, more...))
}

// open is headers, and returns an error if the connection is closed.
func (r *raw) open(stream uint32, more ...string) error {
	r.t.Helper()
	r.block.Reset()
	pairs := append([]string{
		":method", "POST", ":scheme", "http", ":authority", "x",
		":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		"te", "trailers",
	}, more...)
	if !slices.Contains(more, "content-type") {
		pairs = append(pairs, "content-type", "application/grpc")
	}
	for i := 0; i < len(pairs); i += 2 {
		r.do(r.fields.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}))
	}
	return r.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: r.block.Bytes(), EndHeaders: true,
	})
}

// flood sends header fields without end, until the connection is closed or a bound that no server
// should reach.
func (r *raw) flood() {
	r.t.Helper()
	r.do(r.fields.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 10_000)}))
	err := r.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: r.block.Bytes(),
	})
	for i := 0; err == nil; i++ {
		if i == 10_000 {
			r.t.Fatal("100 MB of header fields were read")
		}
		err = r.framer.WriteContinuation(1, false, r.block.Bytes())
	}
}

// message sends a request for the domain "e", and ends the stream.
func (r *raw) message(stream uint32) {
	r.t.Helper()
	r.do(r.framer.WriteData(stream, true, []byte("\x00\x00\x00\x00\x03\x0a\x01e")))
}

// until reads frames until the connection ends or stream does, and returns how: "closed", "reset",
// or the status of gRPC or HTTP. If neither ends within a minute, it returns "nothing".
func (r *raw) until(stream uint32) string {
	for {
		f, err := r.framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "nothing"
		} else if err != nil {
			return "closed"
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			return "closed"
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "reset"
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID != stream {
				continue
			}
			for _, field := range f.Fields {
				if field.Name == "grpc-status" || field.Name == ":status" && field.Value != "200" {
					return field.Value
				}
			}
		}
	}
}

func TestMalformedFrames(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{})
	opens := func(message string) func(r *raw) {
		return func(r *raw) {
			r.headers(1)
			r.do(r.framer.WriteData(1, true, []byte(message)))
		}
	}
	fields := func(pairs ...string) func(r *raw) {
		return func(r *raw) {
			r.headers(1, pairs...)
			r.message(1)
		}
	}
	for name, test := range map[string]struct {
		send func(r *raw)
		end  string
	}{
		"a good request":              {opens("\x00\x00\x00\x00\x03\x0a\x01e"), "0"},
		"an empty message":            {opens("\x00\x00\x00\x00\x00"), "0"},
		"a malformed message":         {opens("\x00\x00\x00\x00\x03\x0a\xffe"), "3"},
		"a message longer than told":  {opens("\x00\x00\x00\x00\xff\x0a"), "13"},
		"a message of four gigabytes": {opens("\x00\xff\xff\xff\xff\x0a"), "8"},
		"a compressed message":        {opens("\x01\x00\x00\x00\x01\x0a"), "13"},
		"two messages":                {opens("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "13"},
		"no message":                  {opens(""), "13"},
		"unknown compression":         {fields("grpc-encoding", "zip"), "12"},
		"another content type":        {fields("content-type", "text/plain"), "415"},
		"many header fields":          {fields("x", strings.Repeat("x", 10_000)), "0"},
		"too many of them":            {fields("x", strings.Repeat("x", 20_000)), "closed"},
		"without end":                 {(*raw).flood, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, address)
			test.send(r)
			if got := r.until(1); got != test.end {
				t.Errorf("it ended with %q, want %q", got, test.end)
			}
		})
	}
	for name, text := range map[string]string{
		"an even stream":       "\x00\x00\x01\x01\x05\x00\x00\x00\x02\x82",
		"data on no stream":    "\x00\x00\x01\x00\x01\x00\x00\x00\x00x",
		"a frame too long":     "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"a ping of five bytes": "\x00\x00\x05\x06\x00\x00\x00\x00\x00xxxxx",
		"a block of no fields": "\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff",
		"no HTTP/2":            "GET / HTTP/1.1\r\n" + strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, address)
			r.write(text)
			if got := r.until(1); got != "closed" {
				t.Errorf("it ended with %q, want the end of the connection", got)
			}
		})
	}
	if _, err := ask(t, dial(t, address), "a", "b"); err != nil {
		t.Errorf("after all of them: %v", err)
	}
}

func (r *raw) write(text string) {
	r.t.Helper()
	_, err := io.WriteString(r.conn, text)
	r.do(err)
}

// A client that opens and resets streams runs no more handlers than it may have streams, and only
// its own connection waits.
func TestRapidReset(t *testing.T) {
	const most = 8
	begun, end := make(chan struct{}, 10_000), make(chan struct{})
	stuck := func(ctx context.Context, r *envoy.Request, out *envoy.Response) error {
		if r.Domain == "e" {
			begun <- struct{}{}
			<-end // it does not see that its client is gone
		}
		return echo(ctx, r, out)
	}
	_, address := serve(t, deciderFunc(stuck), Options{MaxStreams: most})
	defer close(end)
	attacker := dialRaw(t, address)
	for i := range uint32(2_000) {
		stream := 2*i + 1
		attacker.headers(stream)
		attacker.message(stream)
		if i < most {
			<-begun
		}
		attacker.do(attacker.framer.WriteRSTStream(stream, http2.ErrCodeCancel))
	}
	conn := dial(t, address)
	for range 20 {
		if _, err := ask(t, conn, "a", "b"); err != nil {
			t.Fatalf("meanwhile: %v", err)
		}
	}
	if n := len(begun); n > 0 {
		t.Errorf("%d handlers ran for one connection, want %d", most+n, most)
	}
}

// A request that is not sent whole ends its connection, whatever time its client asks for.
func TestRequestThatIsNotSentWhole(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{Timeout: 50 * time.Millisecond})
	for _, more := range [][]string{nil, {"grpc-timeout", "99999999H"}} {
		r := dialRaw(t, address)
		r.headers(1, more...)
		// On a busy machine, the connection may be closed already.
		_ = r.framer.WriteData(1, false, []byte("\x00\x00\x00\x00\x03\x0a\x01"))
		if got := r.until(1); got != "closed" {
			t.Errorf("%v: it ended with %q; want the end of the connection", more, got)
		}
	}
}

// Requests that are not sent whole hold a bounded part of the memory, and keep nobody out.
func TestMemoryOfIncompleteRequests(t *testing.T) {
	s, address := serve(t, deciderFunc(echo), Options{})
	honest := dial(t, address)
	const connections, streams, size = 100, 16, 60_000
	var all []*raw
	for range connections {
		r := dialRaw(t, address)
		all = append(all, r)
		for i := range uint32(streams) {
			_ = r.open(2*i + 1) // the server may have closed the connection
			message := append([]byte("\x00\x00\x00\xff\xff"), make([]byte, size)...)
			for part := range slices.Chunk(message, 16_000) {
				_ = r.framer.WriteData(2*i+1, false, part)
			}
		}
		if _, err := ask(t, honest, "a", "b"); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
		const most = 2*maxHeld + connections*(32<<10)
		if held := s.held.Load(); held > most {
			t.Fatalf("%d bytes are held; want at most %d of %d", held, most, connections*streams*size)
		}
	}
	eventually(t, "a connection that holds much is closed", func() bool {
		return s.count() <= connections
	})
	for _, r := range all {
		r.conn.Close()
	}
	eventually(t, "nothing is held", func() bool { return s.held.Load() == 0 })
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after a minute, it is not so that %s", what)
		}
	}
}

// Whole requests hold nothing, however long their header fields are and whatever they ask for.
func TestWholeRequestsHoldNothing(t *testing.T) {
	s, address := serve(t, deciderFunc(echo), Options{})
	conn := dial(t, address)
	for i := range 200 {
		ctx := metadata.AppendToOutgoingContext(t.Context(),
			"baggage", strconv.Itoa(i)+strings.Repeat("b", 2_000))
		request := generatedRequest("edge", "a", strings.Repeat("b", 40_000))
		if _, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, request); err != nil {
			t.Fatal(err)
		}
		health := grpc_health_v1.NewHealthClient(conn)
		if _, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if held := s.held.Load(); held != 0 {
		t.Errorf("%d bytes are held after all answers", held)
	}
}

// Whole requests do not hide what incomplete ones of the same connection hold, and a stream that is
// reset holds nothing.
func TestIncompleteRequestsBesideWholeOnes(t *testing.T) {
	s, address := serve(t, deciderFunc(echo), Options{})
	r := dialRaw(t, address)
	r.headers(1)
	r.do(r.framer.WriteData(1, false, append([]byte("\x00\x00\x00\xff\xff"), make([]byte, 10_000)...)))
	for i := range uint32(100) {
		r.headers(2*i + 3)
		r.message(2*i + 3)
		if got := r.until(2*i + 3); got != "0" {
			t.Fatalf("a whole request ended with %q", got)
		}
	}
	if held := s.held.Load(); held < streamSize+10_000 || held > streamSize+11_000 {
		t.Errorf("%d bytes are held", held)
	}
	r.do(r.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	eventually(t, "nothing is held", func() bool { return s.held.Load() == 0 })
}

func TestPingFlood(t *testing.T) {
	_, address := serve(t, deciderFunc(echo), Options{})
	r := dialRaw(t, address)
	for range 10 {
		r.do(r.framer.WritePing(false, [8]byte{}))
	}
	if got := r.until(1); got != "closed" {
		t.Errorf("%q, want the end of the connection", got)
	}
}
