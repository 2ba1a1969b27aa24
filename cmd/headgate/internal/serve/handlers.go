package serve

import (
	"io"
	"net/http"
	"net/http/pprof"
	"os"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy/wire"
)

// http returns what the HTTP listener serves.
func (s *server) http() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.indexHTTP)
	mux.Handle("GET /healthcheck", s.health)
	mux.HandleFunc("GET /-/healthy", alive)
	mux.Handle("POST /-/reload", s.api.GuardOperator(http.HandlerFunc(s.serveReload)))
	mux.Handle("/v1", s.api) // or the mux would redirect it
	mux.Handle("/v1/", s.api)
	mux.Handle("/json", wire.JSONHandler(decider{s, s.limiter}, s.api.GuardOperator))
	mux.Handle("/auth", s.auth)
	mux.Handle("/auth/", s.auth)
	if s.o.Metrics == Off {
		mux.Handle("GET /metrics", s.metrics.Handler())
	}
	if s.console != nil {
		mux.Handle("/console", s.console)
		mux.Handle("/console/", s.console)
	}
	return s.api.CleanPaths(mux)
}

// indexHTTP lists the paths of the HTTP listener.
func (s *server) indexHTTP(w http.ResponseWriter, _ *http.Request) {
	text := "Headgate: /v1/openapi.yaml /auth /json /healthcheck /-/healthy /-/reload"
	if s.o.Metrics == Off {
		text += " /metrics"
	}
	if s.console != nil && s.console.IsOn() {
		text += " /console/"
	}
	writeText(w, http.StatusOK, text+"\n")
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) //nolint:gosec // no HTML; the client may have disconnected
}

// serveReload reads the files again and answers with the error, if there is one.
func (s *server) serveReload(w http.ResponseWriter, _ *http.Request) {
	if err := s.watcher.Reload(); err != nil {
		writeText(w, http.StatusUnprocessableEntity, err.Error()+"\n")
		return
	}
	writeText(w, http.StatusOK, "OK\n")
}

// metricsOnly returns what the listener of metrics serves.
func (s *server) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	path := "/metrics"
	if s.env != nil {
		path = s.env.MetricsPath
	}
	mux.Handle(path, s.metrics.Handler())
	return mux
}

// debug returns what the debug listener serves.
func (s *server) debug() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /stats", s.serveStats)
	mux.HandleFunc("GET /rlconfig", s.serveLimits)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", commandName)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// commandName is what pprof serves as the command line, without the arguments: they may contain the
// password of the store.
func commandName(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, os.Args[0])
}

// index lists the pages of the debug listener.
func index(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, "/stats          counters\n/rlconfig       limits of domains\n"+
		"/debug/pprof/   profiles\n")
}
