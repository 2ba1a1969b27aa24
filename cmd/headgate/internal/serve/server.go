package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/console"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
	"github.com/headgate/headgate/cmd/headgate/internal/http/forwardauth"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/http/proxy"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/serve/watch"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/observe"
)

// server is what Run runs.
type server struct {
	o         Options
	env       *environment.Settings // nil: it does not count
	log       *slog.Logger
	first     *config.Config // as the files were at the start
	firstHash string         // of the files before they were read first
	firstErr  error          // why they could not be read; the server waits for better ones
	loaded    bool           // there is a configuration in force
	stores    *stores
	native    headgate.Store // for rules
	shared    headgate.Store // for Envoy's dialect
	perSecond headgate.Store // for its limits by the second; nil: shared

	health  *health
	metrics *metrics.Metrics
	engine  *rules.Engine
	limiter *envoy.Limiter

	envoyMetrics *metrics.Envoy
	overrides    *overrides.Table
	api          *httpapi.Handler
	auth         http.Handler
	console      *console.Handler // nil: off
	trusted      atomic.Pointer[trusted]
	origins      atomic.Pointer[[]string] // of pages that may read denials
	sampled      onceAMinute
	forwarded    atomic.Bool // an X-Forwarded-For without effect has been logged
	listeners    []listener
	storeUp      atomic.Bool
	keyShared    time.Time // when the key of ids was last prolonged
	keyErr       error     // of the last attempt to share the key
	watcher      *watch.Watcher
	denials      *denialLog // nil: off

	active, previous *config.Config // in force, and before the last load
}

// newServer reads the configuration and makes all parts.
func newServer(o Options) (*server, error) {
	s := &server{
		o: o, env: o.Environment, log: o.Log, health: &health{},
	}
	var labels map[string]string
	if s.env != nil {
		for _, w := range s.env.Warnings {
			s.log.Warn(w)
		}
		labels = s.env.ExtraTags
	}
	s.metrics = metrics.New(o.Version, labels)
	s.health.set(waitsForConfig, true)
	s.health.set(waitsForStore, s.env != nil) // its Redis has no fallback
	var err error
	s.firstHash = config.Hash(s.o.Files, s.loadOptions()) // before: files may change meanwhile
	s.first, err = s.load()
	if err != nil && s.env == nil {
		return nil, err
	}
	if s.firstErr = err; err != nil {
		s.first = &config.Config{}
	}
	s.o.complete(s.first.Listen)
	if s.stores, err = s.openStores(); err != nil {
		return nil, err
	}
	err = s.stores.hashKeys(cmp.Or(s.o.KeySecret, s.first.KeySecret))
	if err == nil {
		err = s.stores.usable()
	}
	if err == nil {
		err = s.build()
	}
	if err != nil {
		s.stores.close()
		return nil, err
	}
	return s, nil
}

// build makes the parts that decide, and gives them the configuration.
func (s *server) build() error {
	if err := s.observe(); err != nil {
		return err
	}
	s.overrides = s.openOverrides()
	if s.stores.file != nil {
		s.restoreMemory()
	}
	s.engine = rules.New(s.native, s.stores.permits, rules.Options{
		Overrides: s.overrides, Observe: s.decided, Answered: s.metrics.Answered,
		Settled:   s.metrics.Settled,
		Unmatched: s.metrics.Unmatched,
	})
	s.metrics.Register(metrics.Waiting(s.engine.Waiting))
	s.api = httpapi.New(httpapi.Options{
		Engine: s.engine, Permits: s.stores.permits, Overrides: s.overrides,
		Redis: s.stores.redis,
	}, apiSettings(s.first))
	if err := s.trust(s.first.Trust); err != nil {
		return err
	}
	s.origins.Store(&s.first.CORS)
	s.auth = forwardauth.New(s.engine, s.client, s.pages, s.noURI)
	s.buildEnvoy()
	s.overrides.Follow(s.switchModes, s.forgetDenials) // after all that they use
	s.registerStore()
	s.buildConsole()
	if s.o.LogDenials {
		s.denials = &denialLog{log: s.log, key: s.loggedKey, tops: map[string]*ruleDenials{}}
	}
	s.watcher = s.newWatcher()
	if s.env != nil && s.env.ForceStart {
		s.health.set(waitsForConfig, false)
	}
	if s.firstErr == nil && !s.xds() {
		return s.apply(s.first)
	}
	return nil
}

// trusted are the proxies whose X-Forwarded-For counts.
type trusted struct {
	proxies []netip.Prefix
	client  func(*http.Request) netip.Addr
}

// trust makes proxies those whose X-Forwarded-For counts.
func (s *server) trust(proxies []netip.Prefix) error {
	client, err := rules.ClientAddress(proxies)
	if err == nil {
		s.trusted.Store(&trusted{proxies, s.warnOfForwarded(client, proxies)})
	}
	return err
}

// client returns the address of the client of r.
func (s *server) client(r *http.Request) netip.Addr { return s.trusted.Load().client(r) }

// isTrusted reports whether a trusted proxy sent r.
func (s *server) isTrusted(r *http.Request) bool {
	return rules.IsFrom(r, s.trusted.Load().proxies)
}

// pages lets pages of other sites read an answer, if the files say so.
func (s *server) pages(fields http.Header, r *http.Request) {
	answer.ForPages(fields, r, *s.origins.Load())
}

func (s *server) openOverrides() *overrides.Table {
	if s.stores.redis == nil {
		return overrides.NewMemory()
	}
	return overrides.NewRedis(s.stores.redis, s.stores.box, func(err error) {
		if lost, ok := errors.AsType[overrides.LostError](err); ok {
			s.metrics.Lost(lost)
			s.log.Warn("overrides: " + err.Error() + "; for an hour, the console can put them back")
			return
		}
		s.log.Error("overrides: read failed; the current ones stay in force", "error", err)
	})
}

// followOthers reads what other instances change until ctx ends: overrides, modes, resets, and
// whether the console has viewers.
func (s *server) followOthers(ctx context.Context) {
	var also overrides.Also
	if s.console != nil {
		also = s.console.Ask
	}
	s.overrides.Run(ctx, also)
}

// switchModes gives rules other modes than the files.
func (s *server) switchModes(modes map[string]rules.Mode) {
	s.engine.Switch(modes)
	s.metrics.UseModes(s.engine.Rules())
	list := make([]string, 0, len(modes))
	for rule, mode := range modes {
		list = append(list, rule+"="+mode.String())
	}
	slices.Sort(list)
	s.log.Info("rule modes differ from the file", "modes", list)
}

// forgetDenials drops what is remembered of a key that an instance has reset.
func (s *server) forgetDenials(r overrides.Reset) {
	if strings.Contains(r.Rule, "/") { // of Envoy's dialect
		for _, slot := range s.limiter.Slots(r.Rule, r.Key) {
			s.limiter.Forget(slot)
		}
		return
	}
	terms, err := s.engine.Terms(r.Rule, r.Key)
	if err != nil || s.stores.denials == nil {
		return
	}
	for _, l := range terms.StateLimits() {
		s.stores.denials.Forget(r.Key, l)
	}
}

// loggedKey returns a key as it may be in the log.
func (s *server) loggedKey(key string) string {
	if s.stores.box == nil {
		return key
	}
	return s.stores.redis.StoredKey(key)
}

// observe measures the calls of all stores.
func (s *server) observe() (err error) {
	observers := []observe.Observer{{Called: s.metrics.Called}}
	if s.stores.file != nil {
		observers = append(observers, observe.Observer{Decided: s.stores.file.Decided})
	}
	if wantsOTel() {
		o, err := s.openOTel()
		if err != nil {
			return err
		}
		observers = append(observers, o)
	}
	if s.native, err = observe.New(s.stores.cached, observers...); err != nil {
		return err
	}
	if s.shared, err = observe.New(s.stores.bare, observers...); err != nil {
		return err
	}
	if s.stores.perSecond != nil {
		s.perSecond, err = observe.New(s.stores.perSecond, observers...)
	}
	return err
}

// decided counts and, for a fraction of all, logs what a rule decided.
func (s *server) decided(e rules.Event) {
	if errors.Is(e.Err, context.Canceled) { // the client left: no one failed
		return
	}
	if s.console != nil {
		s.console.Decided(&e)
	}
	if s.denials != nil {
		s.denials.add(&e)
	}
	if s.stores.box != nil && (e.Rule.LabelKeys || s.o.LogDecisions > 0) {
		e.Key = s.stores.redis.StoredKey(e.Key)
	}
	s.metrics.Decided(e)
	if s.o.LogDecisions == 0 || rand.Float64() >= s.o.LogDecisions {
		return
	}
	attributes := []any{
		"rule", e.Rule.Name, "key", e.Key, "outcome", e.Outcome.String(),
		"remaining", e.Decision.Remaining, "retry_after", e.Decision.RetryAfter,
		"degraded", e.Decision.Degraded(),
	}
	if e.Err != nil {
		attributes = append(attributes, "error", e.Err)
	}
	s.log.Info("decision", attributes...)
}

// openStores opens the stores, whose keys are not hashed yet.
func (s *server) openStores() (*stores, error) {
	if s.env != nil && s.o.Store == "" {
		opened, err := openEnvironment(s.env)
		if err == nil {
			opened.outages = &outageLog{log: s.log, store: opened.name}
		}
		return opened, err
	}
	if s.env != nil && s.env.KeyPrefix != "" {
		s.log.Warn("CACHE_KEY_PREFIX is set and has no effect: --store is given as well")
	}
	url := cmp.Or(s.o.Store, s.first.Store, "memory:")
	policy := s.first.WhenStoreFails
	if policy == "" && s.env == nil {
		policy = config.Share
	}
	return openURL(url, policy, s.first.Instances, s.first.StoreTimeout, s.log)
}

func (s *server) registerStore() {
	m := metrics.Store{Up: s.decides, Overrides: s.overrides.Count}
	if s.stores.fallback != nil {
		m.Fallback = s.stores.fallback.Stats
	}
	if s.stores.redis != nil {
		m.Redis = s.stores.redis.Stats
	}
	if memory, ok := s.stores.bare.(*headgate.Memory); ok {
		m.Keys = memory.Keys
	}
	s.metrics.RegisterStore(m)
}

// decides reports whether the store answers, and no circuit is open.
func (s *server) decides() bool {
	f := s.stores.fallback
	return s.storeUp.Load() && (f == nil || !f.Stats().Degraded)
}

// How often the store is asked whether it answers, and for how long.
const (
	pingInterval = time.Second / 2
	pingTimeout  = time.Second
)

// watchStore asks the store whether it answers, until ctx ends.
func (s *server) watchStore(ctx context.Context) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for failed := false; ctx.Err() == nil; {
		err := s.ping(ctx)
		if ctx.Err() != nil {
			return
		}
		var stats fallback.Stats
		if s.stores.fallback != nil {
			stats = s.stores.fallback.Stats()
		}
		s.stores.outages.look(err, stats)
		if err == nil &&
			(failed || s.keyErr != nil || time.Since(s.keyShared) > httpapi.IDKeyInterval) {
			s.shareKey(ctx)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// shareKey makes this instance sign ids with the key of all instances.
func (s *server) shareKey(ctx context.Context) {
	err := s.api.ShareKey(ctx)
	if err != nil && s.keyErr == nil && ctx.Err() == nil {
		s.log.Error("other instances cannot settle reservations that were made at this one: "+
			"the key that signs their ids is not shared", "error", err)
	}
	s.keyShared, s.keyErr = time.Now(), err
}

func (s *server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := s.stores.ping(ctx)
	s.storeUp.Store(err == nil)
	switch {
	case err == nil:
		s.health.set(waitsForStore, false)
	case s.env != nil && s.env.HealthByStore:
		s.health.set(waitsForStore, true)
	}
	return err
}

// close closes what newServer opened. Without Redis, a fleet cannot be left: the others count this
// instance for some seconds more.
func (s *server) close() {
	if err := s.stores.close(); err != nil {
		s.log.Warn("closing the store failed", "error", err)
	}
}

// proxy returns what limits requests and passes them on.
func (s *server) proxy(p Proxy) (http.Handler, error) {
	return proxy.New(s.engine, p.Target, proxy.Options{
		Client: s.client, Trusted: s.isTrusted, Pages: s.pages, Log: s.log,
	})
}

// grpcCertificates returns the files of TLS of the gRPC listener.
func (s *server) grpcCertificates() certs.Files {
	if s.env == nil {
		return s.first.TLS
	}
	return s.env.TLS
}
