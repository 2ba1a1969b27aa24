// Package xds gets the configuration of Envoy's dialect from a management server, such as Envoy
// Gateway, by an aggregated state-of-the-world stream.
package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// A server that is gone without a word would keep the stream open for ever. gRPC servers refuse
// pings more often than each 5 minutes unless told otherwise.
const (
	pingAfter   = 5 * time.Minute
	pingTimeout = 20 * time.Second
)

// Options say which server is asked, and how.
type Options struct {
	Server     string // host:port
	NodeID     string
	Metadata   map[string]string // of the node
	Headers    map[string]string // of each stream
	Retry      time.Duration     // between attempts to connect
	MaxMessage int               // bytes; 0: 4 MiB

	// How long to wait after a stream that has worked ends: from BackoffInitial, twice as long
	// after each one, up to BackoffMax. With Jitter, the part BackoffRandom of it is random.
	BackoffInitial time.Duration
	BackoffMax     time.Duration
	BackoffRandom  float64
	Jitter         bool

	TLS       bool
	Cert, Key string // files, which are read for each connection
	ServerCA  string
	ServerSAN string
}

// Client follows the configuration of a server. Make one with New.
type Client struct {
	o       Options
	use     func([]*envoy.Domain) error
	log     *slog.Logger
	node    *core.Node
	version string  // that was accepted last
	refused *string // the version of the last configuration, if it was refused
	streams int     // that ended early, in a row
}

// New returns a Client that calls use with each configuration. If use returns an error, the Client
// rejects the configuration, and waits for the next one of the server.
func New(o Options, use func([]*envoy.Domain) error, log *slog.Logger) (*Client, error) {
	fields := make(map[string]any, len(o.Metadata))
	for name, value := range o.Metadata {
		fields[name] = value
	}
	about, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fmt.Errorf("xds: the metadata of the node: %w", err)
	}
	if _, err := o.credentials(); err != nil {
		return nil, err
	}
	node := &core.Node{Id: o.NodeID, Metadata: about}
	return &Client{o: o, use: use, log: log, node: node}, nil
}

// Run follows the configuration until ctx ends.
func (c *Client) Run(ctx context.Context) {
	for ctx.Err() == nil {
		started := time.Now()
		worked, err := c.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := c.o.Retry
		if worked {
			if time.Since(started) > c.o.BackoffMax {
				c.streams = 0
			}
			wait = c.backoff()
		}
		c.log.Warn("xds: the stream of configurations failed", "server", c.o.Server, "error", err,
			"retry_in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// backoff returns how long to wait after a stream that has worked.
func (c *Client) backoff() time.Duration {
	d := c.o.BackoffInitial << min(c.streams, 20)
	c.streams++
	if d > c.o.BackoffMax || d <= 0 {
		d = c.o.BackoffMax
	}
	if c.o.Jitter {
		d -= time.Duration(rand.Float64() * c.o.BackoffRandom * float64(d))
	}
	return d
}

// stream follows one stream until it ends, and reports whether it received anything.
func (c *Client) stream(ctx context.Context) (worked bool, err error) {
	creds, err := c.o.credentials()
	if err != nil {
		return false, err
	}
	conn, err := grpc.NewClient(c.o.Server, grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}))
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(c.o.Headers))
	var options []grpc.CallOption
	if c.o.MaxMessage > 0 {
		options = append(options, grpc.MaxCallRecvMsgSize(c.o.MaxMessage))
	}
	client := discovery.NewAggregatedDiscoveryServiceClient(conn)
	s, err := client.StreamAggregatedResources(ctx, options...)
	if err != nil {
		return false, err
	}
	next := c.request("")
	next.Node = c.node // in the first request only
	for {
		if err := s.Send(next); err != nil {
			if errors.Is(err, io.EOF) {
				_, err = s.Recv() // which knows why the stream has ended
			}
			return worked, err
		}
		r, err := s.Recv()
		if err != nil {
			return worked, err
		}
		worked = true
		var again bool
		if next, again = c.received(r); again {
			// Some servers send a refused configuration again, or another such one, at once.
			select {
			case <-ctx.Done():
			case <-time.After(c.o.Retry):
			}
		}
	}
}

// request returns the request that follows a response with this nonce.
func (c *Client) request(nonce string) *discovery.DiscoveryRequest {
	return &discovery.DiscoveryRequest{
		TypeUrl: typeURL, VersionInfo: c.version, ResponseNonce: nonce,
	}
}

// received uses a response, and returns the request that accepts or refuses it. Again reports that
// the one before was refused as well.
func (c *Client) received(
	r *discovery.DiscoveryResponse,
) (next *discovery.DiscoveryRequest, again bool) {
	version, last := r.GetVersionInfo(), c.refused
	err := c.apply(r)
	if c.refused = nil; err == nil {
		c.version = version
		c.log.Info("xds: the configuration was loaded", "version", version,
			"domains", len(r.GetResources()))
		return c.request(r.GetNonce()), false
	}
	c.refused = &version
	if last == nil || *last != version || version == "" {
		message := "xds: the configuration is invalid; the current one stays in force"
		if c.version == "" {
			message = "xds: the configuration is invalid; there is none in force"
		}
		c.log.Error(message, "version", version, "error", err)
	}
	next = c.request(r.GetNonce())
	next.ErrorDetail = status.New(codes.InvalidArgument, err.Error()).Proto()
	return next, last != nil
}

func (c *Client) apply(r *discovery.DiscoveryResponse) error {
	if kind := r.GetTypeUrl(); kind != "" && kind != typeURL {
		return fmt.Errorf("the response has the type %q; want %q", kind, typeURL)
	}
	var domains []*envoy.Domain
	for i, resource := range r.GetResources() {
		if kind := resource.GetTypeUrl(); kind != typeURL {
			return fmt.Errorf("a resource has the type %q; want %q", kind, typeURL)
		}
		d, err := decodeDomain(resource.GetValue())
		if err != nil {
			return fmt.Errorf("resource %d: %w", i+1, err)
		}
		domains = append(domains, d)
	}
	return c.use(domains)
}

// credentials reads the files of TLS.
func (o *Options) credentials() (credentials.TransportCredentials, error) {
	if !o.TLS {
		return insecure.NewCredentials(), nil
	}
	config, err := certs.Client(o.ServerCA, o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("xds: %w", err)
	}
	config.ServerName = o.ServerSAN
	return credentials.NewTLS(config), nil
}
