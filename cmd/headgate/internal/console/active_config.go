package console

import (
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
)

// configView is the active configuration.
type configView struct {
	Rules   []ruleView `json:"rules"`
	Changes []change   `json:"changes"` // the last ones, the oldest first
	Grafana string     `json:"grafana,omitempty"`

	Overrides []httpapi.Override `json:"overrides"`
	Modes     []httpapi.Mode     `json:"modes"`
}

// ruleView is a rule in force.
type ruleView struct {
	rule

	Match    string   `json:"match"` // empty: everything
	Key      string   `json:"key"`   // empty: all requests together
	Limits   []string `json:"limits"`
	Cost     string   `json:"cost"`
	Headroom string   `json:"headroom"` // empty: none
	Hold     string   `json:"hold"`     // how requests wait; empty: they do not
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

// serveConfig serves the active configuration. It has no secrets.
func (h *Handler) serveConfig(w http.ResponseWriter, _ *http.Request) error {
	now := h.loaded.Load()
	return httpapi.Reply(w, configView{
		Rules:     h.ruleViews(now.config),
		Overrides: httpapi.Overrides(h.options.Overrides, now.config.Masked),
		Modes:     httpapi.Modes(h.options.Overrides, now.config.Masked),
		Changes:   append([]change{}, now.changes...), // a list, and not null
		Grafana:   h.options.Grafana,
	})
}

func (h *Handler) ruleViews(c *config.Config) []ruleView {
	list := []ruleView{}
	for i, r := range h.options.Engine.Rules() {
		v := ruleView{
			rule:  rule{r.Name, kindRule, r.Mode.String(), r.FileMode.String()},
			Match: config.MatchText(&r.Match), Key: config.KeyText(r.Key),
			Limits: config.LimitTexts(r.Rule), Cost: r.Cost.String(),
			Headroom: r.Headroom.String(),
			Hold:     config.HoldText(r.Rule),
		}
		if counted := r.Count.String(); counted != "" {
			v.Cost += ", counts " + counted
		}
		if i < len(c.Places) && c.Rules[i].Name == r.Name {
			v.File, v.Line = c.Places[i].File, c.Places[i].Line
		}
		list = append(list, v)
	}
	return list
}
