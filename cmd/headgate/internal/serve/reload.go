package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/serve/watch"
)

// builtIn reports whether the server has no files, and serves the example.
func (s *server) builtIn() bool { return len(s.o.Files) == 0 && s.env == nil }

// xds reports whether the configuration comes from a server, and not from files.
func (s *server) xds() bool { return s.env != nil && s.env.XDS != nil }

// load reads the files.
func (s *server) load() (*config.Config, error) {
	switch {
	case s.builtIn():
		return config.Example()
	case s.xds():
		return &config.Config{}, nil // the server of the configuration has it
	}
	return config.Load(s.o.Files, s.loadOptions())
}

func (s *server) loadOptions() config.Options {
	o := config.Options{NoProxy: len(s.o.Proxies) == 0, Store: s.o.Store}
	if s.env == nil {
		return o
	}
	o.Store = cmp.Or(o.Store, "redis:") // of its variables
	o.MergeDomains = s.env.MergeDomains
	// The default directory need not exist where files are given.
	if s.env.IsSet("RUNTIME_ROOT") || len(s.o.Files) == 0 {
		o.Runtime = &s.env.Runtime
	}
	return o
}

// apply makes all parts decide by c from now on.
func (s *server) apply(c *config.Config) error {
	set, err := rules.NewSet(c.Rules)
	if err != nil {
		return err
	}
	if err := s.useDomains(c.Domains); err != nil {
		return err
	}
	if err := s.trust(c.Trust); err != nil {
		return err
	}
	s.origins.Store(&c.CORS)
	s.stores.bypass.use(c.Rules)
	s.metrics.Use(c.Rules) // before the engine: decisions of other rules are not counted
	s.engine.Use(set)
	s.overrides.UseFile(c.Overrides)
	s.api.Use(apiSettings(c))
	s.metrics.UseModes(s.engine.Rules())
	s.metrics.Loaded(c.Hash, time.Now(), nil)
	s.previous, s.active = s.active, c
	s.showLoaded(c)
	s.envoyMetrics.Statistics.ConfigLoadSuccess.Add(1)
	for _, w := range c.Warnings {
		s.log.Warn(w)
	}
	s.warnOfUnused(c)
	s.health.set(waitsForConfig, false)
	s.loaded = true
	return nil
}

func apiSettings(c *config.Config) httpapi.Settings {
	return httpapi.Settings{Tokens: c.API.Tokens, AllowInlineLimits: c.API.AllowInlineLimits}
}

// warnOfUnused logs the settings of c that have no effect, or no effect before a restart.
func (s *server) warnOfUnused(c *config.Config) {
	fallback := s.env == nil || s.o.Store != "" // else the variables name the store
	if !fallback && (c.Store != "" || c.WhenStoreFails != "" || c.Instances != 0 ||
		c.StoreTimeout != 0) {
		s.log.Warn("store, when_store_fails, store_timeout and instances of the file have no " +
			"effect: the REDIS_ variables name the Redis, and its errors are returned to the " +
			"client")
	}
	if s.env != nil && c.Listen != (config.Listen{}) {
		s.log.Warn("listen of the file has no effect: the variables name the addresses")
	}
	if s.env != nil && c.Envoy != (config.Envoy{}) {
		s.log.Warn("envoy of the file has no effect: the variables have its settings")
	}
	for _, setting := range []struct {
		field   string
		changed bool
	}{
		{"store", s.env == nil && s.o.Store == "" && c.Store != s.first.Store},
		{"key_secret", s.o.KeySecret == "" && c.KeySecret != s.first.KeySecret},
		{"when_store_fails", fallback && c.WhenStoreFails != s.first.WhenStoreFails},
		{"store_timeout", fallback && c.StoreTimeout != s.first.StoreTimeout},
		{"instances", fallback && c.Instances != s.first.Instances},
		{"listen", s.env == nil && c.Listen != s.first.Listen},
		{"tls", c.TLS != s.first.TLS},
		{"envoy", s.env == nil && c.Envoy != s.first.Envoy},
	} {
		if setting.changed {
			s.log.Warn("the change takes effect after a restart", "field", setting.field)
		}
	}
}

// newWatcher returns what loads the files again when they change.
func (s *server) newWatcher() *watch.Watcher {
	o := watch.Options{
		Hash:     func() string { return config.Hash(s.o.Files, s.loadOptions()) },
		Load:     s.reload,
		Report:   s.reported,
		Loaded:   s.first.Hash,
		Requests: s.o.Reload,
	}
	if s.builtIn() || s.xds() {
		o.Hash = func() string { return s.first.Hash }
	}
	if s.firstErr != nil {
		o.Loaded = s.firstHash // it has been reported
	}
	return watch.New(o)
}

// reload reads the files again. If they cannot be used, the configuration in force stays.
func (s *server) reload() error {
	if s.xds() {
		return fmt.Errorf("xds: %s sends the configuration; there are no files to read",
			s.env.XDS.Server)
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	return s.apply(c)
}

// changed names the rules that are not the same in two configurations, and those with other
// overrides.
func changed(before, after *config.Config) (names []string) {
	lines := map[string]int{}
	for i, c := range []*config.Config{before, after} {
		if c != nil {
			for line := range strings.Lines(c.RuleLines()) {
				lines[line] |= i + 1
			}
		}
	}
	for line, in := range lines {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "rule "), ":")
		name, _, _ = strings.Cut(name, " for ")
		if in != 3 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// reported logs and counts a load.
func (s *server) reported(err error) {
	if err == nil {
		s.log.Info("the configuration was loaded", "hash", s.active.Hash,
			"changed", changed(s.previous, s.active))
		return
	}
	if s.xds() {
		s.log.Warn("the reload has no effect", "error", err)
		return
	}
	s.metrics.Loaded("", time.Time{}, err)
	s.showLoadError(err)
	s.envoyMetrics.Statistics.ConfigLoadError.Add(1)
	if !s.loaded {
		s.log.Error("the configuration is invalid; there is none in force", "error", err)
		return
	}
	s.log.Error("the new configuration is invalid; the current one stays in force", "error", err)
}
