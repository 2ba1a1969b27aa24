package serve

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/grpcserver"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/xds"
	"github.com/headgate/headgate/cmd/headgate/internal/http/forwardauth"
	"github.com/headgate/headgate/cmd/headgate/internal/listen"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
)

// decider decides requests of Envoy's protocol, and measures them.
type decider struct {
	*server
	limiter *envoy.Limiter
}

// Decide implements wire.Decider.
func (d decider) Decide(ctx context.Context, req *envoy.Request, resp *envoy.Response) error {
	started := time.Now()
	err := d.limiter.Decide(ctx, req, resp)
	d.envoyMetrics.Served(time.Since(started))
	if d.o.LogDecisions > 0 && rand.Float64() < d.o.LogDecisions {
		d.logEnvoy(req, resp, err)
	}
	return err
}

const maxLogged = 1 << 10 // bytes of descriptors, which a client may have made long

func (s *server) logEnvoy(req *envoy.Request, resp *envoy.Response, err error) {
	attributes := []any{"domain", req.Domain}
	if s.stores.box == nil { // if Redis has no clear keys, the log has none either
		texts := make([]string, len(req.Descriptors))
		for i := range texts {
			texts[i] = req.Descriptors[i].Text()
		}
		text := strings.Join(texts, ", ")
		attributes = append(attributes, "descriptors", text[:min(len(text), maxLogged)])
	}
	if err != nil {
		attributes = append(attributes, "error", err)
	} else {
		attributes = append(attributes, "allowed", resp.Code == envoy.OK,
			"limits", strings.Join(resp.Limits(), ", "))
	}
	s.log.Info("decision", attributes...)
}

// onceAMinute has the time at which a line of each kind was last logged. There must be few kinds.
type onceAMinute struct{ logged sync.Map } // by the kind, *atomic.Int64: nanoseconds since 1970

// due reports whether a line of this kind may be logged now. It returns true at most once a minute.
func (o *onceAMinute) due(kind string) bool {
	at, found := o.logged.Load(kind)
	if !found {
		at, _ = o.logged.LoadOrStore(kind, new(atomic.Int64))
	}
	logged, _ := at.(*atomic.Int64)
	now, last := time.Now().UnixNano(), logged.Load()
	return now-last > int64(time.Minute) && logged.CompareAndSwap(last, now)
}

// reasonOf returns the index of the reason of err in metrics.CallFailures.
func reasonOf(err error) int {
	_, isInvalid := errors.AsType[*headgate.InvalidError](err)
	_, isRequest := errors.AsType[envoy.RequestError](err)
	switch code := status.Code(err); {
	case isInvalid || isRequest || code == codes.InvalidArgument || code == codes.ResourceExhausted:
		return 0
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return 1
	case code == codes.Internal:
		return 2
	}
	return 3
}

// callFailed counts a call of Envoy that failed, and logs one of each reason a minute. Envoy lets
// the request pass, unless failure_mode_deny is set, and its client may have chosen what fails.
func (s *server) callFailed(err error) {
	why := metrics.CallFailures[reasonOf(err)]
	s.envoyMetrics.Failed(why)
	if s.sampled.due(why) {
		s.log.Warn("a call of Envoy failed, so Envoy decides; at most one a minute is logged",
			"reason", why, "error", err)
	}
}

// unmatched logs a descriptor that no limit matches.
func (s *server) unmatched(domain string, known bool, d *envoy.Descriptor) {
	text := "no limit matches a descriptor, so it is not limited"
	if !known {
		text = "no file has the domain of a descriptor, so it is not limited"
	}
	if !s.sampled.due(text) {
		return
	}
	shown := d.Text()
	if s.stores.box != nil { // if Redis has no clear keys, the log has no values either
		keys := make([]string, len(d.Entries))
		for i := range keys {
			keys[i] = d.Entries[i].Key
		}
		shown = strings.Join(keys, "|")
	}
	s.log.Info(text+"; at most one a minute is logged",
		"domain", domain[:min(len(domain), maxLogged)],
		"descriptor", shown[:min(len(shown), maxLogged)])
}

// refused logs a client of the gRPC listener that uses another protocol.
func (s *server) refused(client net.Addr, mistake string, err error) {
	if !s.sampled.due(mistake) {
		return
	}
	attributes := []any{"client", client.String(), "mistake", mistake}
	if err != nil {
		attributes = append(attributes, "error", err)
	}
	s.log.Warn("a connection to the gRPC listener failed; at most one a minute is logged",
		attributes...)
}

// buildEnvoy makes what serves Envoy's protocol.
func (s *server) buildEnvoy() {
	from := s.first.Envoy
	o := envoy.Options{
		DynamicMetadata: from.DynamicMetadata, StopWhenOverLimit: from.AllOrNone,
		LocalCacheBytes: from.LocalCacheBytes, RetryAfter: from.HeaderFields,
	}
	if from.HeaderFields {
		o.LimitHeader, o.RemainingHeader, o.ResetHeader =
			"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
	}
	milliseconds := false
	if s.env != nil {
		o, milliseconds = s.env.Limiter, s.env.MillisecondTimes
	}
	if !s.o.NoConsole {
		o.OverLimit = func(d envoy.Denial) { s.console.OverLimit(d) } // which is made later
	}
	o.Unmatched = s.unmatched
	s.envoyMetrics = metrics.NewEnvoy(s.metrics, milliseconds)
	s.limiter = envoy.New(s.shared, s.perSecond, o, &s.envoyMetrics.Statistics)
}

// useDomains makes the limiter decide by domains. Without any, it allows every request.
func (s *server) useDomains(domains []*envoy.Domain) error {
	c, err := envoy.NewConfig(domains, s.env != nil && s.env.MergeDomains)
	if err != nil {
		return err
	}
	s.limiter.Use(c)
	s.health.set(waitsForDomain, s.env != nil && s.env.HealthByDomain && len(domains) == 0)
	return nil
}

// followXDS uses the configurations of a server until ctx ends.
func (s *server) followXDS(ctx context.Context) {
	c, err := xds.New(*s.env.XDS, s.useXDS, s.log)
	if err != nil {
		s.log.Error("xds: the client cannot start", "error", err)
		return
	}
	c.Run(ctx)
}

// useXDS makes the limiter decide by domains.
func (s *server) useXDS(domains []*envoy.Domain) error {
	if err := s.useDomains(domains); err != nil {
		s.metrics.Loaded("", time.Time{}, err)
		s.showLoadError(err)
		s.envoyMetrics.Statistics.ConfigLoadError.Add(1)
		return err
	}
	s.metrics.Loaded("xds", time.Now(), nil)
	s.showLoaded(&config.Config{Hash: "xds", Domains: domains})
	s.envoyMetrics.Statistics.ConfigLoadSuccess.Add(1)
	s.health.set(waitsForConfig, false)
	return nil
}

// grpcQuiet is more than a request over gRPC takes.
const grpcQuiet = 15 * time.Second

// defaultMaxAge is when a connection over gRPC is asked to close, so that instances that were added
// get some.
const defaultMaxAge = 30 * time.Minute

// openGRPC opens the gRPC listener.
func (s *server) openGRPC(ctx context.Context) error {
	if s.o.GRPC == Off {
		return nil
	}
	config, err := s.tls(s.grpcCertificates(), "h2")
	if err != nil {
		return err
	}
	bounds := listen.Bounds{Connections: s.o.Connections, Quiet: grpcQuiet}
	on, err := listen.On(ctx, "--grpc", s.o.GRPC, bounds)
	if err != nil {
		return err
	}
	o := grpcserver.Options{
		TLS: config, Failed: s.callFailed, Refused: s.refused,
		Panicked: func(value any) { s.panicked("grpc", value) },
		Register: func(r grpc.ServiceRegistrar) {
			service := forwardauth.NewExtAuthz(s.engine, s.client)
			authv3.RegisterAuthorizationServer(r, service)
		},
	}
	o.MaxConnectionAge = cmp.Or(s.first.Envoy.MaxConnectionAge, defaultMaxAge)
	if s.env != nil {
		o.MaxConnectionAge, o.MaxConnectionAgeGrace = s.env.MaxAge, s.env.MaxAgeGrace
	}
	server := grpcserver.New(decider{s, s.limiter}, o)
	s.health.tell(server.SetReady)
	serve := func() error { return server.Serve(on) }
	s.listeners = append(s.listeners, listener{"grpc", on, serve, server.GracefulStop})
	return nil
}

// serveStats prints the counters of Envoy's protocol.
func (s *server) serveStats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	s.envoyMetrics.WriteStats(w)
}

// serveLimits prints the limits of Envoy's dialect.
func (s *server) serveLimits(w http.ResponseWriter, _ *http.Request) {
	text := ""
	if c := s.limiter.Config(); c != nil {
		text = c.String()
	}
	writeText(w, http.StatusOK, text)
}
