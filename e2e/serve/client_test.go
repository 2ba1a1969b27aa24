package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// client asks a server over both protocols.
type client struct {
	base string // URL
	web  *http.Client
	grpc []rls.RateLimitServiceClient // each a connection

	connections []*grpc.ClientConn
}

// connections is how many connections of gRPC a client has.
const connections = 4

func newClient(t *testing.T, s *server) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	return newClientOver(t, "http://"+s.http, transport, s.grpc, insecure.NewCredentials())
}

func newClientOver(
	t *testing.T, base string, transport *http.Transport, address string,
	credentials credentials.TransportCredentials,
) *client {
	t.Helper()
	c := &client{base: base, web: &http.Client{Transport: transport}}
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials))
		if err != nil {
			t.Fatal(err)
		}
		c.connections = append(c.connections, conn)
		c.grpc = append(c.grpc, rls.NewRateLimitServiceClient(conn))
	}
	t.Cleanup(c.close)
	return c
}

// close closes all connections. Later calls do nothing.
func (c *client) close() {
	c.web.CloseIdleConnections()
	for _, conn := range c.connections {
		_ = conn.Close()
	}
}

// answer is what a server decided.
type answer struct {
	granted  bool
	degraded bool // as HTTP says
	err      error
}

// take asks for a token of a rule over HTTP, for one key.
func (c *client) take(ctx context.Context, rule string) answer {
	body := strings.NewReader(fmt.Sprintf(`{"rule":%q,"key":"header:a"}`, rule))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/take", body)
	if err != nil {
		return answer{err: err}
	}
	response, err := c.web.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{err: err}
	}
	var decision struct {
		Allowed  *bool `json:"allowed"`
		Degraded bool  `json:"degraded"`
	}
	if response.StatusCode == http.StatusServiceUnavailable &&
		bytes.Contains(b, []byte("the limits cannot be checked")) {
		return answer{degraded: true}
	}
	err = json.Unmarshal(b, &decision)
	if err != nil || response.StatusCode != http.StatusOK || decision.Allowed == nil {
		return answer{err: fmt.Errorf("status %d: %s", response.StatusCode, b)}
	}
	return answer{granted: *decision.Allowed, degraded: decision.Degraded}
}

// limit asks for a hit of a descriptor over gRPC, on the connection of number i.
func (c *client) limit(ctx context.Context, i int, key string) answer {
	response, err := c.grpc[i%len(c.grpc)].ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: "edge", Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: key}},
		}},
	})
	if err != nil {
		return answer{err: err}
	}
	return answer{granted: response.GetOverallCode() == rls.RateLimitResponse_OK}
}
