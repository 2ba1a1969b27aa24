package serve

import (
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/actions"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/console"
)

// maxViewers is how many viewers the console has at a time. They keep their connections, of which
// half remain for others.
const maxViewers = 100

// buildConsole makes the operator's page.
func (s *server) buildConsole() {
	if s.o.NoConsole {
		return
	}
	s.console = console.New(console.Options{
		KeysOnly: s.o.ConsoleKeysOnly, Grafana: s.o.Grafana,
		Version: s.o.Version, Viewers: max(1, min(maxViewers, s.o.Connections/2)),
		API: s.api, Engine: s.engine, Overrides: s.overrides, Domains: s.limiter,
		Store: s.native, Redis: s.stores.redis, Box: s.stores.box,
		StoreAs: s.stores.name, StoreUp: s.storeUp.Load,
		WithoutStore: s.stores.withoutStore,
		Metrics:      s.metrics, Statistics: &s.envoyMetrics.Statistics,
		Permits: s.stores.permits, Acted: s.logAct,
	})
}

// logAct logs what an operator has done or undone.
func (s *server) logAct(a actions.Action) {
	s.log.Warn("operator action in the console", "act", a.Kind, "rule", a.Rule,
		"key", s.loggedKey(a.Key), "limits", a.Limits, "mode", a.Mode, "by", a.By,
		"note", a.Note, "undone", a.Undone != nil)
}

// showLoaded lets the console show c as the configuration in force.
func (s *server) showLoaded(c *config.Config) {
	if s.console != nil {
		s.console.Use(c, time.Now())
	}
}

// showLoadError lets the console show why the files could not be used.
func (s *server) showLoadError(err error) {
	if s.console != nil {
		s.console.LoadFailed(err, time.Now())
	}
}
