package console

import (
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
)

// configView is the configuration in force, beside the files.
type configView struct {
	Files   []config.Text `json:"files"`  // as they are now
	Faults  []faultView   `json:"faults"` // null: the last load succeeded
	Rules   []ruleView    `json:"rules"`
	Changes []change      `json:"changes"` // the last ones, the oldest first
	Grafana string        `json:"grafana,omitempty"`

	Overrides []httpapi.Override `json:"overrides"`
	Modes     []httpapi.Mode     `json:"modes"`
}

// faultView is why the files are not in force.
type faultView struct {
	File string `json:"file"` // empty: not of a line
	Line int    `json:"line"`
	Text string `json:"text"`
}

// ruleView is a rule in force.
type ruleView struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Mode     string   `json:"mode"`
	FileMode string   `json:"file_mode"`
	Match    string   `json:"match"` // empty: everything
	Key      string   `json:"key"`   // empty: all requests together
	Limits   []string `json:"limits"`
	Cost     string   `json:"cost"`
	Headroom string   `json:"headroom"` // empty: none
	Hold     string   `json:"hold"`     // how requests wait; empty: they do not
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

// serveConfig shows the rules in force, the files, and the last error.
func (h *Handler) serveConfig(w http.ResponseWriter, _ *http.Request) error {
	now := h.loaded.Load()
	v := configView{
		Rules:     h.ruleViews(now.config),
		Overrides: httpapi.Overrides(h.options.Overrides, now.config.Masked),
		Modes:     httpapi.Modes(h.options.Overrides, now.config.Masked),
		Changes:   append([]change{}, now.changes...), // a list, and not null
		Grafana:   h.options.Grafana,
	}
	files, err := h.options.Files()
	if v.Files = files; files == nil {
		v.Files = []config.Text{} // they cannot be read: the next load says why
	}
	if err == nil {
		err = now.err
	}
	if err != nil {
		for _, f := range config.Faults(err) {
			v.Faults = append(v.Faults, faultView{f.File, f.Line, config.WithoutPasswords(f.Text)})
		}
	}
	return reply(w, v)
}

func (h *Handler) ruleViews(c *config.Config) []ruleView {
	list := []ruleView{}
	for i, r := range h.options.Engine.Rules() {
		v := ruleView{
			Name: r.Name, Kind: kindRule, Mode: r.Mode.String(), FileMode: r.FileMode.String(),
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
