package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/listen"
)

// How long a client of the HTTP listener may take to send a request, and to receive the answer from
// then on. A proxy bounds its requests itself, because they may be streams.
const (
	bodyTimeout   = 30 * time.Second
	answerTimeout = time.Minute
)

// listener is a server on an address.
type listener struct {
	name     string // for messages
	on       net.Listener
	serve    func() error
	shutdown func(context.Context) error
}

// Run serves until ctx ends. Then it is not ready any more, waits for what is under way as long as
// Options.Grace, and returns nil.
func Run(ctx context.Context, o Options) error {
	s, err := newServer(o) //nolint:contextcheck // a fleet ends when it is closed, and not before
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.open(ctx); err != nil {
		s.closeListeners()
		return err
	}
	if len(s.listeners) == 0 {
		return errors.New(
			"all listeners are off; want --http, --grpc, --debug, --metrics or --proxy")
	}
	s.announce()
	if s.firstErr != nil {
		s.reported(s.firstErr)
	}
	return s.serve(ctx)
}

// open opens all listeners, so that a wrong address is an error before anything is served.
func (s *server) open(ctx context.Context) error {
	config, err := s.tls(s.first.TLS, "h2", "http/1.1")
	if err != nil {
		return err
	}
	type wanted struct {
		name, flag, address string
		handler             http.Handler
	}
	all := []wanted{
		{"http", "--http", s.o.HTTP, s.http()},
		{"debug", "--debug", s.o.Debug, s.debug()},
		{"metrics", "--metrics", s.o.Metrics, s.metricsOnly()},
	}
	for _, p := range s.o.Proxies {
		h, err := s.proxy(p)
		if err != nil {
			return err
		}
		all = append(all, wanted{"proxy", "--proxy", p.Listen, h})
	}
	bounds := listen.Bounds{Connections: s.o.Connections}
	for _, w := range all {
		if w.address == Off {
			continue
		}
		var on net.Listener
		on, err := listen.On(ctx, w.flag, w.address, bounds)
		if err != nil {
			return err
		}
		if config != nil {
			on = tls.NewListener(on, config)
		}
		switch w.name {
		case "http":
			s.api.Listen(on.Addr())
		case "debug":
			w.handler = httpapi.OnlyOwnPages(on.Addr(), w.handler)
		}
		s.addHTTP(w.name, on, w.handler)
	}
	return s.openGRPC(ctx)
}

func (s *server) addHTTP(name string, on net.Listener, h http.Handler) {
	server := listen.Server(s.recovered(name, h))
	switch name {
	case "http":
		server.ReadTimeout, server.WriteTimeout = bodyTimeout, answerTimeout
	case "proxy": // clients of gRPC speak HTTP/2 also without TLS
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetHTTP2(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	shutdown := func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err != nil {
			_ = server.Close()
		}
		return err
	}
	serve := func() error { return server.Serve(on) }
	s.listeners = append(s.listeners, listener{name, on, serve, shutdown})
}

func (s *server) tls(files certs.Files, protocols ...string) (*tls.Config, error) {
	if files.Cert == "" {
		return nil, nil //nolint:nilnil // no TLS is a configuration
	}
	return certs.New(files, s.log, protocols...)
}

// serve serves on all listeners until ctx ends or one of them fails.
func (s *server) serve(ctx context.Context) error {
	failed := make(chan error, len(s.listeners))
	var serving sync.WaitGroup
	background, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the drain
	defer stop()
	// First: the overrides of the store are in force for the first request, and other instances
	// accept the ids that are made for it.
	s.panics(ctx, "overrides", func(ctx context.Context) { _ = s.overrides.Refresh(ctx) })
	following, leave := context.WithCancel(context.WithoutCancel(ctx)) // also during the drain
	defer leave()
	serving.Go(func() { s.keepRunning(following, "overrides", s.followOthers) })
	s.shareKey(ctx)
	for _, l := range s.listeners {
		serving.Go(func() {
			if err := l.serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s listener: %w", l.name, err)
			}
		})
	}
	serving.Go(func() { s.keepRunning(background, "files", s.watcher.Run) })
	serving.Go(func() { s.keepRunning(background, "store", s.watchStore) })
	if s.denials != nil {
		serving.Go(func() { s.keepRunning(background, "denials", s.denials.run) })
	}
	if s.stores.file != nil {
		serving.Go(func() { s.keepRunning(background, "memory file", s.keepMemory) })
	}
	if s.console != nil {
		// It ends its streams before the drain, and runs once.
		serving.Go(func() { s.panics(background, "console", s.console.Run) })
	}
	if s.xds() {
		serving.Go(func() { s.keepRunning(background, "xds", s.followXDS) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.health.set(isEnding, true)
	if err == nil && s.o.DrainDelay > 0 {
		s.log.Info("draining: not ready, and serving", "delay", s.o.DrainDelay)
		time.Sleep(s.o.DrainDelay)
	}
	stop()
	s.engine.EndHolds()
	s.log.Info("shutting down", "grace", s.o.Grace)
	until := time.Now().Add(s.o.Grace)
	s.drain(context.WithoutCancel(ctx))
	leave()
	s.await(&serving, until)
	if s.stores.file != nil {
		s.saveMemory()
	}
	return err
}

// lastWait is how long tasks may take to end after the grace.
const lastWait = time.Second

// await waits for serving until a time: a read of a file may hang, as on a network file system.
func (s *server) await(serving *sync.WaitGroup, until time.Time) {
	ended := make(chan struct{})
	go func() {
		serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(max(time.Until(until), lastWait)):
		s.log.Warn("a task did not end; check that the files of the configuration can be read")
	}
}

// drain ends all listeners, and waits for their requests as long as the grace.
func (s *server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Grace)
	defer cancel()
	started := time.Now()
	var ending sync.WaitGroup
	for _, l := range s.listeners {
		ending.Go(func() {
			if err := l.shutdown(ctx); err != nil {
				s.log.Warn("requests were cut off", "listener", l.name, "error", err)
			}
		})
	}
	ending.Wait()
	s.log.Info("stopped", "after", time.Since(started).Round(time.Millisecond))
}

func (s *server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.on.Close()
	}
}
