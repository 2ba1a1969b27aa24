package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/headgate/headgate/service/internal/certs"
	"github.com/headgate/headgate/service/internal/config"
	"github.com/headgate/headgate/service/internal/environment"
)

// server is what Run runs.
type server struct {
	o         Options
	env       *environment.Settings // nil: it does not count
	log       *slog.Logger
	config    *config.Config // as it was at the start
	stores    *stores
	health    *health
	listeners []listener
}

// newServer reads the configuration and makes all parts.
func newServer(ctx context.Context, o Options) (*server, error) {
	s := &server{o: o, log: o.Log, health: &health{}}
	if o.Environment != nil {
		s.env = o.Environment.settings
		for _, w := range s.env.Warnings {
			s.log.Warn(w)
		}
	}
	s.health.set(waitsForConfig, true)
	var err error
	if s.config, err = s.load(); err != nil {
		return nil, err
	}
	s.o.complete(s.config.Listen)
	if s.stores, err = s.openStores(); err != nil {
		return nil, err
	}
	if err := s.apply(s.config); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads the files.
func (s *server) load() (*config.Config, error) {
	return &config.Config{}, nil
}

// apply makes all parts decide by c from now on.
func (s *server) apply(c *config.Config) error {
	s.health.set(waitsForConfig, false)
	return nil
}

func (s *server) openStores() (*stores, error) {
	if s.env != nil && s.o.Store == "" {
		return openEnvironment(s.env)
	}
	url := s.config.Store
	if s.o.Store != "" {
		url = s.o.Store
	}
	if url == "" {
		url = "memory:"
	}
	return openURL(url, s.config.WhenStoreFails, s.log)
}

// close closes what newServer opened.
func (s *server) close() error {
	if s.stores == nil {
		return nil
	}
	return s.stores.close()
}

// certificates returns the files of TLS.
func (s *server) certificates() certs.Files {
	t := s.config.TLS
	return certs.Files{Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA}
}

// http returns what the HTTP listener serves.
func (s *server) http() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthcheck", s.health)
	mux.HandleFunc("GET /-/healthy", alive)
	return mux
}

// debug returns what the debug listener serves.
func (s *server) debug() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// index lists the pages of the debug listener.
func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, "/stats          counters\n/rlconfig       limits of Envoy's dialect\n"+
		"/debug/pprof/   profiles\n")
}

func (s *server) metricsOnly() http.Handler { return http.NewServeMux() }

// openRest opens the listeners that speak something else than plain HTTP.
func (s *server) openRest(context.Context) error { return nil }

// follow applies changes of the files until ctx ends.
func (s *server) follow(ctx context.Context) {}

// announce says where the server listens, and what to try next.
func (s *server) announce() {
	for _, l := range s.listeners {
		s.log.Info("listening", "listener", l.name, "address", l.on.Addr().String())
	}
}
