package service

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/headgate/headgate/service/internal/config"
	"github.com/headgate/headgate/service/internal/rules"
)

// load reads the files.
func (s *server) load() (*config.Config, error) {
	if len(s.o.Files) == 0 && s.env == nil {
		return config.Example()
	}
	return config.Load(s.o.Files, s.loadOptions())
}

func (s *server) loadOptions() config.Options {
	if s.env == nil {
		return config.Options{}
	}
	r := config.Runtime(s.env.Runtime)
	return config.Options{Runtime: &r, MergeDomains: s.env.MergeDomains}
}

// apply makes all parts decide by c from now on.
func (s *server) apply(c *config.Config) error {
	set, err := rules.NewSet(c.Rules)
	if err != nil {
		return err
	}
	s.engine.Use(set)
	names := make(map[string]bool)
	for _, r := range c.Rules {
		names[r.Name] = true
	}
	s.metrics.Keep(names)
	s.hash = c.Hash
	s.metrics.Loaded(c.Hash, time.Now(), nil)
	for _, w := range c.Warnings {
		s.log.Warn(w)
	}
	s.warnOfRestart(c)
	s.health.set(waitsForConfig, false)
	return nil
}

// warnOfRestart says what has changed in c and counts after a restart only.
func (s *server) warnOfRestart(c *config.Config) {
	for field, changed := range map[string]bool{
		"store":            c.Store != s.first.Store,
		"when_store_fails": c.WhenStoreFails != s.first.WhenStoreFails,
		"listen":           c.Listen != s.first.Listen,
		"tls":              c.TLS != s.first.TLS,
		"trust":            !slices.Equal(c.Trust, s.first.Trust),
	} {
		if changed {
			s.log.Warn("a change counts after a restart only", "field", field)
		}
	}
}

// reload reads the files again. If they cannot be used, the configuration in force stays.
func (s *server) reload() error {
	s.loading.Lock()
	defer s.loading.Unlock()
	c, err := s.load()
	if err == nil && c.Hash == s.hash {
		return nil
	}
	if err == nil {
		err = s.apply(c)
	}
	if err != nil {
		s.metrics.Loaded("", time.Time{}, err)
		s.log.Error("the new configuration cannot be used; the one in force stays", "error", err)
		return err
	}
	s.log.Info("the configuration was loaded", "hash", s.hash, "files", len(c.Files))
	return nil
}

// follow applies changes of the files until ctx ends.
func (s *server) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.o.Reload:
			_ = s.reload() // it is logged
		}
	}
}

var (
	_ = errors.Join
	_ = os.Stat
)
