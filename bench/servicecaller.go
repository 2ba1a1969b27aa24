package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

const shouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

func (r *serviceRun) headgate(
	ctx context.Context, load serviceLoad,
) (*serviceProcess, Contender, error) {
	return calledByGRPC(r.startServer(ctx, r.programs.headgate, load))
}

func (r *serviceRun) upstream(
	ctx context.Context, load serviceLoad,
) (*serviceProcess, Contender, error) {
	return calledByGRPC(r.startServer(ctx, r.programs.upstream, load))
}

// floor runs this program as a server of grpc-go that gives one answer to all.
func (r *serviceRun) floor(
	ctx context.Context, _ serviceLoad,
) (*serviceProcess, Contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	address := "127.0.0.1:" + ports[0]
	return calledByGRPC(start(ctx, self, []string{floorVariable + "=" + address}, address, ""))
}

// overHTTP runs Headgate with the same limit as a rule, asked over HTTP/JSON.
func (r *serviceRun) overHTTP(
	ctx context.Context, load serviceLoad,
) (*serviceProcess, Contender, error) {
	s, client, err := r.withRule(ctx, load, "2000000000/m fixed-window")
	if err != nil {
		return nil, nil, err
	}
	return s, httpCaller{client, "http://" + s.http + "/v1/take"}, nil
}

// withRule runs Headgate with one rule, and returns a client for it.
func (r *serviceRun) withRule(
	ctx context.Context, load serviceLoad, limit string, more ...string,
) (*serviceProcess, *http.Client, error) {
	file := filepath.Join(r.programs.dir, "rules.yaml")
	rule := "rules:\n  - {name: bench, key: [\"header:X-User\"], limits: [\"" + limit + "\"]}\n"
	if err := os.WriteFile(file, []byte(rule), 0o644); err != nil { //nolint:gosec // not secret
		return nil, nil, err
	}
	more = append(more, "HEADGATE_CONFIG="+file)
	s, err := r.startServer(ctx, r.programs.headgate, load, more...)
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024}
	return s, &http.Client{Transport: transport}, err
}

// rawCodec passes messages on as bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil //nolint:forcetypeassert // our own
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize() //nolint:forcetypeassert // our own
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// grpcCaller asks over as many connections as Envoy has workers on a small machine.
type grpcCaller struct {
	conns [4]*grpc.ClientConn
	next  *atomic.Uint32
}

func calledByGRPC(s *serviceProcess, err error) (*serviceProcess, Contender, error) {
	if err != nil {
		return nil, nil, err
	}
	c := grpcCaller{next: new(atomic.Uint32)}
	for i := range c.conns {
		c.conns[i], err = grpc.NewClient("passthrough:///"+s.grpc,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
		if err != nil {
			return nil, nil, errors.Join(err, s.stop())
		}
	}
	return s, c, nil
}

// Take asks about one descriptor with the entry (user, key).
func (c grpcCaller) Take(ctx context.Context, key string) (bool, error) {
	request, answer := rateLimitRequest(key), []byte(nil)
	conn := c.conns[c.next.Add(1)%uint32(len(c.conns))]
	if err := conn.Invoke(ctx, shouldRateLimit, &request, &answer); err != nil {
		return false, err
	}
	// An answer begins with its overall code, 1 for OK and 2 for OVER_LIMIT.
	if len(answer) < 2 || answer[0] != 1<<3 || answer[1] < 1 || answer[1] > 2 {
		return false, fmt.Errorf("the server answered % x", answer)
	}
	return answer[1] == 1, nil
}

// Close closes the connections.
func (c grpcCaller) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// rateLimitRequest encodes a RateLimitRequest in the domain bench; key is short.
func rateLimitRequest(key string) []byte {
	field := func(number byte, text string) string {
		return string([]byte{number<<3 | 2, byte(len(text))}) + text
	}
	entry := field(1, "user") + field(2, key)
	return []byte(field(1, "bench") + field(2, field(1, entry)))
}

// httpCaller asks over HTTP connections that are kept alive.
type httpCaller struct {
	client *http.Client
	url    string
}

// Take asks for one token of the rule bench.
func (c httpCaller) Take(ctx context.Context, key string) (bool, error) {
	body := `{"rule":"bench","key":"header:` + key + `"}`
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, c.url, bytes.NewReader([]byte(body)))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	var answer struct {
		Allowed *bool `json:"allowed"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Allowed == nil {
		return false, fmt.Errorf("%s: %s", response.Status, text)
	}
	return *answer.Allowed, nil
}

// authCaller asks by forward auth, as a gateway does.
type authCaller struct {
	client *http.Client
	url    string
}

// Take asks about a request of the user key.
func (c authCaller) Take(ctx context.Context, key string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("X-User", key)
	request.Header.Set("X-Forwarded-Uri", "/orders/"+key)
	request.Header.Set("User-Agent", "bench")
	response, err := c.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return false, err
	}
	if response.StatusCode == http.StatusTooManyRequests {
		return false, nil
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("GET %s: %s", c.url, response.Status)
	}
	return true, nil
}

// floorVariable, if set, makes this program a server of grpc-go at that address, which gives one
// answer to all: what remains of a server's time if deciding costs nothing.
const floorVariable = "HEADGATE_BENCH_GRPC_FLOOR"

func serveFloor(ctx context.Context, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	granted := []byte{1 << 3, 1}
	answer := func(
		_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
	) (any, error) {
		var request []byte
		return &granted, decode(&request)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.NumStreamWorkers(4))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: answer}},
	}, nil)
	return s.Serve(l)
}
