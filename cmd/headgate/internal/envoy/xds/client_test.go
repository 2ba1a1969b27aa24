package xds

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// management is a server of configurations by go-control-plane.
type management struct {
	t       *testing.T
	address string
	cache   cache.SnapshotCache
	grpc    *grpc.Server
	serving sync.WaitGroup

	mu       sync.Mutex
	requests []*discovery.DiscoveryRequest
}

func startManagement(t *testing.T, address string, o ...grpc.ServerOption) *management {
	t.Helper()
	m := &management{
		t: t, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), grpc: grpc.NewServer(o...),
	}
	callbacks := server.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests = append(m.requests, r)
		return nil
	}}
	s := server.NewServer(context.Background(), m.cache, callbacks)
	discovery.RegisterAggregatedDiscoveryServiceServer(m.grpc, s)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	m.serving.Go(func() { _ = m.grpc.Serve(l) })
	t.Cleanup(m.stop)
	return m
}

func (m *management) stop() {
	m.grpc.Stop()
	m.serving.Wait()
}

func (m *management) set(version string, configs ...types.Resource) {
	m.t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: configs,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cache.SetSnapshot(m.t.Context(), "node", snapshot); err != nil {
		m.t.Fatal(err)
	}
}

// last returns the last request.
func (m *management) last() *discovery.DiscoveryRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return &discovery.DiscoveryRequest{Node: &core.Node{}}
	}
	return m.requests[len(m.requests)-1]
}

func config(name string, requests uint32) *ratelimit.RateLimitConfig {
	return &ratelimit.RateLimitConfig{Name: name, Domain: name, Descriptors: []*ratelimit.RateLimitDescriptor{{
		Key: "k", RateLimit: &ratelimit.RateLimitPolicy{
			Unit: ratelimit.RateLimitUnit_HOUR, RequestsPerUnit: requests,
		},
	}}}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// A client gets the first configuration and each change, refuses what cannot be used, and comes
// back after the server was away.
func TestClient(t *testing.T) {
	m := startManagement(t, "127.0.0.1:0")
	m.set("1", config("a", 5))
	var mu sync.Mutex
	var got []*envoy.Domain
	use := func(domains []*envoy.Domain) error {
		mu.Lock()
		defer mu.Unlock()
		if domains[0].Descriptors[0].RateLimit.RequestsPerUnit == 9 {
			return errors.New("refused")
		}
		got = domains
		return nil
	}
	limit := func() (largest uint32) { // domains come in any order
		mu.Lock()
		defer mu.Unlock()
		for _, d := range got {
			largest = max(largest, d.Descriptors[0].RateLimit.RequestsPerUnit)
		}
		return largest
	}
	o := Options{
		Server: m.address, NodeID: "node", Metadata: map[string]string{"zone": "z"}, Retry: 5 * time.Millisecond,
		BackoffInitial: 5 * time.Millisecond, BackoffMax: 20 * time.Millisecond, BackoffRandom: 0.5, Jitter: true,
	}
	c, err := New(o, use, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	defer running.Wait()
	defer cancel()

	eventually(t, "the first configuration", func() bool { return limit() == 5 })
	eventually(t, "it is accepted", func() bool { return m.last().GetVersionInfo() == "1" })
	m.set("2", config("a", 5), config("b", 7))
	eventually(t, "a change", func() bool { return limit() == 7 })
	m.set("3", config("a", 9))
	eventually(t, "it is refused", func() bool {
		r := m.last()
		return r.GetErrorDetail().GetMessage() == "refused" && r.GetVersionInfo() == "2"
	})
	if limit() != 7 {
		t.Errorf("the limit is %d after a refused change", limit())
	}
	m.stop()
	m = startManagement(t, m.address)
	m.set("4", config("a", 11))
	eventually(t, "the server is back", func() bool { return limit() == 11 })
	m.mu.Lock()
	first := m.requests[0]
	m.mu.Unlock()
	if first.GetNode().GetId() != "node" || first.GetVersionInfo() != "2" ||
		first.GetNode().GetMetadata().GetFields()["zone"].GetStringValue() != "z" {
		t.Errorf("the first request of a stream: %v", first)
	}
}

// By TLS the client checks the certificate of the server and its name, and sends the headers.
func TestTLS(t *testing.T) {
	https := httptest.NewTLSServer(nil) // for its certificate
	defer https.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := make(chan string, 100)
	m := startManagement(t, "127.0.0.1:0", grpc.Creds(credentials.NewServerTLSFromCert(&https.TLS.Certificates[0])),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			fields, _ := metadata.FromIncomingContext(s.Context())
			tokens <- strings.Join(fields.Get("x-token"), ",")
			return h(srv, s)
		}))
	m.set("1", config("a", 5))
	for san, works := range map[string]bool{"example.com": true, "other.example": false} {
		t.Run(san, func(t *testing.T) {
			got := make(chan string, 10)
			c, err := New(Options{
				Server: m.address, NodeID: "node", Headers: map[string]string{"X-Token": "t"}, Retry: time.Millisecond,
				TLS: true, ServerCA: ca, ServerSAN: san,
			}, func(domains []*envoy.Domain) error { got <- domains[0].Name; return nil }, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if !works {
				if _, err := c.stream(ctx); err == nil || !strings.Contains(err.Error(), "other.example") {
					t.Errorf("another name: %v", err)
				}
				return
			}
			var running sync.WaitGroup
			running.Go(func() { c.Run(ctx) })
			if name := <-got; name != "a" {
				t.Errorf("the domain is %q", name)
			}
			if token := <-tokens; token != "t" {
				t.Errorf("the header is %q", token)
			}
			cancel()
			running.Wait()
		})
	}
}

// field returns a message with one field of text.
func field(number protowire.Number, text string) []byte {
	return appendBytes(nil, number, []byte(text))
}

func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// What go-control-plane encodes is decoded, with the fields that its types do not have yet.
func TestDecode(t *testing.T) {
	inner := &ratelimit.RateLimitDescriptor{
		Key: "user", Value: "a*", ShadowMode: true, DetailedMetric: true,
		RateLimit: &ratelimit.RateLimitPolicy{
			Unit: ratelimit.RateLimitUnit_WEEK, RequestsPerUnit: 1<<32 - 1, Name: "n",
			Replaces: []*ratelimit.RateLimitReplace{{Name: "x"}, {Name: "y"}},
		},
	}
	about, err := structpb.NewStruct(map[string]any{"team": "edge", "n": []any{1.0, true}})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := proto.Marshal(about)
	if err != nil {
		t.Fatal(err)
	}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1)
	unknown = appendBytes(unknown, 8, encoded)
	inner.ProtoReflect().SetUnknown(unknown)
	message, err := proto.Marshal(&ratelimit.RateLimitConfig{
		Name: "file", Domain: "edge", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Key: "free", RateLimit: &ratelimit.RateLimitPolicy{Unlimited: true}},
			{Key: "group", Descriptors: []*ratelimit.RateLimitDescriptor{inner}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeDomain(message)
	if err != nil {
		t.Fatal(err)
	}
	want := &envoy.Domain{Name: "edge", File: "xds resource file", Descriptors: []envoy.Spec{
		{Key: "free", RateLimit: &envoy.RateLimit{Unlimited: true}},
		{Key: "group", Descriptors: []envoy.Spec{{
			Key: "user", Value: "a*", ShadowMode: true, DetailedMetric: true, QuotaMode: true,
			Metadata: map[string]any{"team": "edge", "n": []any{1.0, true}},
			RateLimit: &envoy.RateLimit{
				Unit: envoy.Week.String(), RequestsPerUnit: 1<<32 - 1, Name: "n", Replaces: []string{"x", "y"},
			},
		}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if _, err := envoy.NewConfig([]*envoy.Domain{got}, false); err != nil {
		t.Error(err)
	}
}

// A configuration that cannot be used is an error, whatever it holds.
func TestDecodeBad(t *testing.T) {
	deep := field(1, "k")
	for range maxDepth + 1 {
		deep = appendBytes(field(1, "k"), 4, deep)
	}
	for name, message := range map[string][]byte{
		"cut off":  {0x0a, 0x05, 'a'},
		"no tag":   {0x07},
		"metadata": appendBytes(nil, 3, appendBytes(nil, 8, []byte{0xff})),
		"too deep": appendBytes(nil, 3, deep),
	} {
		if d, err := decodeDomain(message); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
	noUnit, err := decodeDomain(appendBytes(field(2, "d"), 3, appendBytes(field(1, "k"), 3, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envoy.NewConfig([]*envoy.Domain{noUnit}, false); err == nil {
		t.Error("a limit without a unit is accepted")
	}
}

// No message makes the client panic, and what is decoded can be checked.
func FuzzDecode(f *testing.F) {
	message, err := proto.Marshal(config("a", 5))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Fuzz(func(_ *testing.T, message []byte) {
		d, err := decodeDomain(message)
		if err == nil {
			_, _ = envoy.NewConfig([]*envoy.Domain{d}, false)
		}
	})
}

func TestWrongFiles(t *testing.T) {
	for _, o := range []Options{
		{TLS: true, ServerCA: "nowhere"},
		{TLS: true, Cert: "nowhere", Key: "nowhere"},
	} {
		if _, err := New(o, nil, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// After a refused configuration, the next refused one is answered after a pause, whatever its
// version.
func TestPauseAfterRefusals(t *testing.T) {
	c := Client{
		use: func([]*envoy.Domain) error { return nil }, log: slog.New(slog.DiscardHandler),
	}
	bad := func(version string) *discovery.DiscoveryResponse {
		return &discovery.DiscoveryResponse{
			VersionInfo: version, Resources: []*anypb.Any{{TypeUrl: "other"}},
		}
	}
	for i, step := range []struct {
		response *discovery.DiscoveryResponse
		again    bool
	}{{bad(""), false}, {bad(""), true}, {bad("2"), true}, {nil, false}, {bad("3"), false}, {bad("3"), true}} {
		if _, again := c.received(step.response); again != step.again {
			t.Errorf("step %d: again is %t", i, again)
		}
	}
}

// A response about other resources is refused. Without resources, it would end all limits.
func TestResponseOfAnotherType(t *testing.T) {
	c := Client{
		use: func([]*envoy.Domain) error { return nil }, log: slog.New(slog.DiscardHandler),
	}
	for kind, accepted := range map[string]bool{"": true, typeURL: true, "other": false} {
		next, _ := c.received(&discovery.DiscoveryResponse{TypeUrl: kind})
		if (next.GetErrorDetail() == nil) != accepted {
			t.Errorf("type %q: accepted is %t", kind, !accepted)
		}
	}
}
