package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/problem"
	"github.com/headgate/headgate/redisstore"
)

// keyState is what applies to a key, and what it has used.
type keyState struct {
	Rule    string       `json:"rule"`
	Mode    string       `json:"mode"`
	Banned  bool         `json:"banned"`
	Limits  []limitState `json:"limits"`
	Permits *permitState `json:"permits"` // null: the rule has none
}

type limitState struct {
	Limit      string   `json:"limit"`
	Capacity   int64    `json:"capacity"`
	Remaining  int64    `json:"remaining"`
	RetryAfter *float64 `json:"retry_after_s,omitempty"` // nil: never
	ResetAfter *float64 `json:"reset_after_s,omitempty"`
	Allowed    bool     `json:"allowed"`
	Degraded   bool     `json:"degraded"` // it is of the share of this instance

	fresh bool // nothing is used
}

type permitState struct {
	InUse int64 `json:"in_use"`
	Limit int64 `json:"limit"`
}

const maxKeyText = 4096

// serveKey shows the state of a key under the rule of the request, or under every rule whose keys
// can look like it. Nothing is charged.
func (h *Handler) serveKey(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	name, key := query.Get("rule"), query.Get("key")
	if len(key) > maxKeyText {
		return problem.BadField("key", strconv.Itoa(len(key))+" bytes long",
			"at most "+strconv.Itoa(maxKeyText))
	}
	if !query.Has("key") {
		return problem.BadField("key", "missing", "a key such as ip:192.0.2.1")
	}
	if strings.Contains(name, "/") {
		return h.serveDomainKey(w, r, name, key)
	}
	found := []keyState{}
	known := name == ""
	for _, rule := range h.options.Engine.Rules() {
		if name != "" && rule.Name != name ||
			name == "" && rule.CheckKey(key) != nil && !redisstore.IsHash(key) {
			continue
		}
		known = true
		state, used, err := h.peek(r.Context(), rule.Rule, key)
		if err != nil {
			return err
		}
		// A rule without a key has any key that a program makes up: it is shown where it is used.
		if name != "" || used || len(rule.Key) > 0 || key == rules.KeyOfAll {
			found = append(found, state)
		}
	}
	if !known {
		return &rules.NoRuleError{Name: name}
	}
	return httpapi.Reply(w, map[string]any{"key": key, "rules": found})
}

// peek returns the state of a key under a rule, and whether it is another than that of a new key.
func (h *Handler) peek(
	ctx context.Context, rule *rules.Rule, key string,
) (s keyState, used bool, err error) {
	terms, err := h.options.Engine.Terms(rule.Name, key)
	if err != nil {
		return s, false, err
	}
	s = keyState{
		Rule: rule.Name, Mode: terms.Mode.String(), Banned: terms.Banned, Limits: []limitState{},
	}
	_, used = h.options.Overrides.Find(rule.Name, key)
	for _, l := range terms.Limits {
		d, err := h.options.Store.Take(ctx, headgate.Request{Key: key, Limit: l})
		if err != nil {
			return s, false, err
		}
		one := stateOf(l, d)
		used = used || !one.fresh
		s.Limits = append(s.Limits, one)
	}
	if terms.Permits > 0 {
		d, err := h.options.Permits.AcquirePermit(ctx, concurrency.Request{
			Key: rules.PermitKey(rule.Name, key), Limit: terms.Permits, TTL: time.Second,
		})
		if err != nil {
			return s, false, err
		}
		s.Permits = &permitState{d.InUse, terms.Permits}
		used = used || d.InUse > 0
	}
	return s, used, nil
}

// serveDomainKey shows the counters of a descriptor of Envoy's dialect, as key=value|key=value.
func (h *Handler) serveDomainKey(w http.ResponseWriter, r *http.Request, name, key string) error {
	slots := h.options.Domains.Slots(name, key)
	if len(slots) == 0 {
		return &rules.NoRuleError{Name: name}
	}
	s := keyState{Rule: name, Mode: rules.Enforce.String(), Limits: []limitState{}}
	for _, slot := range slots {
		d, err := slot.Store.Take(r.Context(), headgate.Request{Key: slot.Key, Limit: slot.Limit})
		if err != nil {
			return err
		}
		if one := stateOf(slot.Limit, d); !one.fresh {
			s.Limits = append(s.Limits, one) // of the other limits of the domain, nothing is known
		}
	}
	return httpapi.Reply(w, map[string]any{"key": key, "rules": []keyState{s}})
}

func stateOf(l headgate.Limit, d headgate.Decision) limitState {
	return limitState{
		Limit: l.Named("").String(), Capacity: l.Capacity(), Remaining: d.Remaining,
		RetryAfter: inSeconds(d.RetryAfter), ResetAfter: inSeconds(d.ResetAfter),
		Allowed: d.Allowed(), Degraded: d.Degraded(),
		fresh: d.ResetAfter == 0,
	}
}

func inSeconds(d time.Duration) *float64 {
	if d == headgate.Never {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}
