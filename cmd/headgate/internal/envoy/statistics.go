package envoy

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxPaths bounds the paths that requests add to the statistics of one rule, of the overrides of
// one domain, and of unknown domains. What comes later counts under "other".
const maxPaths = 1000

// Statistics counts what upstream counts, under its names. It outlives configurations: a rule
// that is loaded again goes on counting. The zero value is ready. It is safe for use by many
// goroutines.
type Statistics struct {
	ConfigLoadSuccess atomic.Uint64
	ConfigLoadError   atomic.Uint64
	GlobalShadowMode  atomic.Uint64
	RedisError        atomic.Uint64 // requests that failed because the store did
	ServiceError      atomic.Uint64 // requests that were wrong
	LocalCacheHits    atomic.Uint64
	LocalCacheMisses  atomic.Uint64
	Unmatched         atomic.Uint64 // descriptors that no limit matched

	mu        sync.Mutex
	counters  map[statKey]*Counters
	rules     map[statKey]*ruleStats
	overrides map[string]*paths // by domain
	unknown   paths
}

type statKey struct{ domain, path string }

// Counters counts the hits of one rule, or of one path of values below it.
type Counters struct {
	Domain string // with the characters that names of statistics cannot hold replaced
	Path   string // key_value.key_value; empty: the domain is not configured

	TotalHits               atomic.Uint64
	OverLimit               atomic.Uint64
	NearLimit               atomic.Uint64
	OverLimitWithLocalCache atomic.Uint64
	WithinLimit             atomic.Uint64
	ShadowMode              atomic.Uint64
	NotFound                atomic.Uint64 // requests for a domain that is not configured
}

// Counter is the value of one counter.
type Counter struct {
	Domain string // empty for the counters of the whole service
	Path   string
	Name   string // such as total_hits
	Value  uint64
}

// StatName is the name of c in upstream's statistics.
func (c Counter) StatName() string {
	switch {
	case c.Domain == "" && strings.HasPrefix(c.Name, "localcache."):
		return "ratelimit." + c.Name
	case c.Domain == "":
		return "ratelimit.service." + c.Name
	case c.Path == "":
		return "ratelimit.service.rate_limit." + c.Domain + "." + c.Name
	}
	return "ratelimit.service.rate_limit." + c.Domain + "." + c.Path + "." + c.Name
}

// Visit calls f with every counter: those of the service, then those of rules in the order of
// domain and path.
func (s *Statistics) Visit(f func(Counter)) {
	service := func(name string, v *atomic.Uint64) { f(Counter{Name: name, Value: v.Load()}) }
	service("config_load_success", &s.ConfigLoadSuccess)
	service("config_load_error", &s.ConfigLoadError)
	service("global_shadow_mode", &s.GlobalShadowMode)
	service("call.should_rate_limit.redis_error", &s.RedisError)
	service("call.should_rate_limit.service_error", &s.ServiceError)
	service("localcache.hitCount", &s.LocalCacheHits)
	service("localcache.missCount", &s.LocalCacheMisses)
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.counters))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *Counters) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Path, b.Path))
	})
	for _, c := range all {
		c.visit(f)
	}
}

// Rules calls f with the counters of every rule and path that was ever counted, in no order.
func (s *Statistics) Rules(f func(*Counters)) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.counters))
	s.mu.Unlock()
	for _, c := range all {
		if c.Path != "" {
			f(c)
		}
	}
}

func (c *Counters) visit(f func(Counter)) {
	each := func(name string, v *atomic.Uint64) { f(Counter{c.Domain, c.Path, name, v.Load()}) }
	if c.Path == "" {
		each("domain_not_found", &c.NotFound)
		return
	}
	each("total_hits", &c.TotalHits)
	each("over_limit", &c.OverLimit)
	each("near_limit", &c.NearLimit)
	each("over_limit_with_local_cache", &c.OverLimitWithLocalCache)
	each("within_limit", &c.WithinLimit)
	each("shadow_mode", &c.ShadowMode)
}

// ruleStats are the statistics of one rule.
type ruleStats struct {
	own   *Counters
	paths paths // of values, for rules that count them
}

// use gives the rules of c their statistics.
func (s *Statistics) use(c *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.counted == s {
		return
	}
	c.counted = s
	if s.rules == nil {
		s.rules, s.overrides = map[statKey]*ruleStats{}, map[string]*paths{}
	}
	for _, r := range c.rules {
		key := statKey{r.domain, r.key}
		if s.rules[key] == nil {
			s.rules[key] = &ruleStats{own: s.locked(r.domain, r.key),
				paths: paths{other: r.key + "_other"}}
		}
		r.stats = s.rules[key]
	}
	for _, root := range c.order {
		if s.overrides[root.name] == nil {
			s.overrides[root.name] = &paths{other: "other"}
		}
		root.overrides = s.overrides[root.name]
	}
	if len(s.counters) > maxKeptCounters {
		s.forget(c)
	}
}

// maxKeptCounters is how many counters make Statistics forget those that are not in use.
const maxKeptCounters = 10_000

// forget drops the statistics of rules and domains that c does not have. s.mu must be held.
func (s *Statistics) forget(c *Config) {
	s.rules, s.overrides = map[statKey]*ruleStats{}, map[string]*paths{}
	s.counters = map[statKey]*Counters{}
	keep := func(n *Counters) { s.counters[statKey{n.Domain, n.Path}] = n }
	for _, r := range c.rules {
		s.rules[statKey{r.domain, r.key}] = r.stats
		keep(r.stats.own)
		r.stats.paths.each(keep)
	}
	for _, root := range c.order {
		s.overrides[root.name] = root.overrides
		root.overrides.each(keep)
	}
	s.unknown.each(keep)
}

// notFound counts a request for a domain that is not configured.
func (s *Statistics) notFound(domain string) {
	s.unknown.get(s, "", []byte(domain)).NotFound.Add(1)
}

// locked returns the counters of a path. Two rules may share a path. s.mu must be held.
func (s *Statistics) locked(domain, path string) *Counters {
	key := statKey{sanitize(domain), sanitize(path)}
	c := s.counters[key]
	if c == nil {
		c = &Counters{Domain: key.domain, Path: key.path}
		if s.counters == nil {
			s.counters = map[statKey]*Counters{}
		}
		s.counters[key] = c
	}
	return c
}

// paths finds the counters of the paths that requests bring, without a lock for known ones.
type paths struct {
	known atomic.Pointer[map[string]*Counters]
	other string // the path of what comes when known is full; empty: the paths are domains
}

// rest is the path of all above maxPaths. No other is empty.
const rest = ""

// get returns the counters of path in domain.
func (p *paths) get(s *Statistics, domain string, path []byte) *Counters {
	if len(path) == 0 || len(path) > maxText {
		path = []byte(cmp.Or(p.other, "other"))
	}
	if known := p.known.Load(); known != nil {
		if c := (*known)[string(path)]; c != nil {
			return c
		}
		if len(*known) > maxPaths {
			return (*known)[rest]
		}
	}
	return p.add(s, strings.Clone(domain), string(path))
}

func (p *paths) each(f func(*Counters)) {
	if known := p.known.Load(); known != nil {
		for _, c := range *known {
			f(c)
		}
	}
}

func (p *paths) add(s *Statistics, domain, path string) *Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]*Counters{}
	if old := p.known.Load(); old != nil {
		known = maps.Clone(*old)
	}
	name := path
	switch c := known[name]; {
	case c != nil:
		return c
	case len(known) > maxPaths:
		return known[rest]
	case len(known) == maxPaths:
		name, path = rest, cmp.Or(p.other, "other")
	}
	if p.other == "" {
		domain, path = path, ""
	}
	known[name] = s.locked(domain, path)
	p.known.Store(&known)
	return known[name]
}

var ipv4 = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// sanitize replaces what separates or ends names of statistics: colons, bars, the dots of IPv4
// addresses, and bytes that are not UTF-8.
func sanitize(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	return ipv4.ReplaceAllStringFunc(statReplacer.Replace(s), func(ip string) string {
		return strings.ReplaceAll(ip, ".", "_")
	})
}

var statReplacer = strings.NewReplacer(":", "_", "|", "_")
