package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/cmd/headgate/internal/memoryfile"
	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9/logging"
)

// stores are where all parts keep their state.
type stores struct {
	name    string
	redis   *redisstore.Store // nil in memory
	permits concurrency.Store
	box     *seal.Box // for what is kept besides limits; nil: keys are not hashed

	file      *memoryfile.File // of bare; nil: none
	bare      headgate.Store   // with the fallback, if there is one
	cached    headgate.Store   // bare, with a cache of denials if it is across a network
	bypass    cacheBypass      // in cached; keeps some rules out of the cache
	perSecond headgate.Store   // of limits by second in Envoy's dialect; nil: bare

	denials  *denycache.Store  // the cache of cached; nil: none
	fallback *fallback.Store   // nil if errors are passed on
	policy   config.Policy     // of fallback
	fleet    *redisstore.Fleet // of the policy share
	closers  []io.Closer
	outages  *outageLog
}

// fallbackTimeout is the time budget of a decision. Tests on a busy machine have more.
var fallbackTimeout = 100 * time.Millisecond

// fallbackOpenTimeout is how long a store that fails is not called. The client of a Redis that is
// gone for more than some seconds connects once a second, which adds to it.
const fallbackOpenTimeout = 300 * time.Millisecond

// openURL opens the store at url. While it fails, policy decides; without a policy, the
// caller gets its errors. instances is the least number that share the store; 0: unknown. timeout
// is for each decision; 0: fallbackTimeout.
func openURL(
	url string, policy config.Policy, instances int, timeout time.Duration, log *slog.Logger,
) (*stores, error) {
	path, isFile := strings.CutPrefix(url, storeurl.MemoryFile)
	if isFile && path != "" {
		url = "memory:"
	}
	opened, err := storeurl.Open(url)
	if err != nil {
		return nil, err
	}
	s := &stores{
		name: opened.Name, redis: opened.Redis, permits: opened.Permits,
		bare: opened.Store, closers: []io.Closer{opened},
		outages: &outageLog{log: log, store: opened.Name},
	}
	if m, isMemory := s.bare.(*headgate.Memory); isMemory {
		s.cached = m
		if isFile {
			s.name = storeurl.MemoryFile + path
			s.file, err = memoryfile.New(m, path)
		}
		return s, err
	}
	if err := s.addFallback(policy, instances, timeout); err != nil {
		s.close()
		return nil, err
	}
	return s, s.cacheDenials()
}

// cacheDenials puts a cache of denials around the store.
func (s *stores) cacheDenials() (err error) {
	s.denials, err = denycache.New(s.bare, 0)
	s.bypass.Store, s.bypass.bare = s.denials, s.bare
	s.cached = &s.bypass
	return err
}

// addFallback puts the fallback of policy around the store.
func (s *stores) addFallback(
	policy config.Policy, instances int, timeout time.Duration,
) error {
	s.policy = policy
	o := fallback.Options{
		Timeout: cmp.Or(timeout, fallbackTimeout), OpenTimeout: fallbackOpenTimeout,
		OnChange: func(degraded bool, err error) {
			s.outages.log.Debug("a circuit to the store", "open", degraded, "error", err)
			switch {
			case !degraded: // the outage may go on
			case s.withoutStore() == shareUnknown:
				s.outages.begin("the store failed; all requests are denied, because the number of "+
					"instances is not known; set instances in the rules file to allow a share",
					"error", err, "policy", string(policy))
			default:
				s.outages.begin("the store failed; the fallback decides",
					"error", err, "policy", string(policy))
			}
		},
	}
	switch policy {
	case config.Open:
		o.Mode = fallback.Open
	case config.Share:
		fleet, err := redisstore.NewFleet(s.redis, redisstore.FleetOptions{MinInstances: instances})
		if err != nil {
			return err
		}
		s.fleet, s.closers = fleet, append(s.closers, fleet)
		o.Mode, o.Instances = fallback.Local, fleet.Instances
	case config.Closed:
		o.Mode = fallback.Closed
	default:
		return nil
	}
	around, err := fallback.New(s.bare, o)
	if err != nil {
		return err
	}
	s.bare, s.permits, s.fallback = around, around.Permits(s.permits), around
	return nil
}

// shareUnknown is the policy share while the number of instances is unknown.
const shareUnknown = "unknown"

// withoutStore returns what decides while the store fails: a policy, shareUnknown, or nothing.
func (s *stores) withoutStore() string {
	if s.fleet != nil && s.fleet.Instances() == 0 {
		return shareUnknown
	}
	return string(s.policy)
}

// openEnvironment opens the Redis servers of the environment. Their errors are passed on, so that
// the proxy decides what to do about them.
func openEnvironment(e *environment.Settings) (*stores, error) {
	logging.Disable() // its errors also come as errors
	s := &stores{name: e.Redis.Name()}
	first, err := s.connect(&e.Redis, e.KeyPrefix)
	if err != nil {
		return nil, err
	}
	s.redis, s.permits, s.bare = first, first, first
	if e.PerSecond != nil {
		second, err := s.connect(e.PerSecond, e.KeyPrefix)
		if err != nil {
			s.close()
			return nil, err
		}
		s.perSecond = second
	}
	return s, s.cacheDenials()
}

func (s *stores) connect(r *environment.Redis, prefix string) (*redisstore.Store, error) {
	client, err := r.Client()
	if err != nil {
		return nil, err
	}
	store, err := redisstore.New(client, redisstore.Options{Prefix: prefix})
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("CACHE_KEY_PREFIX: %w", err)
	}
	s.closers = append(s.closers, client)
	return store, nil
}

// hashKeys lets Redis hold no clear key from now on, unless secret is empty.
func (s *stores) hashKeys(secret string) error {
	if secret == "" || s.redis == nil {
		return nil
	}
	s.box = seal.New(secret)
	if second, ok := s.perSecond.(*redisstore.Store); ok {
		if err := second.HashKeys([]byte(secret)); err != nil {
			return err
		}
	}
	return s.redis.HashKeys([]byte(secret))
}

// ping returns the errors of all Redis servers that do not answer.
func (s *stores) ping(ctx context.Context) error {
	if s.redis == nil {
		return nil
	}
	err := s.redis.Ping(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	if second, ok := s.perSecond.(*redisstore.Store); ok {
		if failed := second.Ping(ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("REDIS_PERSECOND_URL: %w", failed))
		}
	}
	return err
}

// usable returns an error if a Redis answers that Headgate cannot use it. One that does not answer
// may be usable later.
func (s *stores) usable() error {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	if err := s.ping(ctx); errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// close closes what open opened, the last first.
func (s *stores) close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
