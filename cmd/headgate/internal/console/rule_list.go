package console

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// rule is a rule of the file, or a rule of a domain under the name of its statistics.
type rule struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`      // rule or domain
	Mode     string `json:"mode"`      // in force
	FileMode string `json:"file_mode"` // in the file
}

// The kinds of rules.
const (
	kindRule   = "rule"
	kindDomain = "domain"
)

// ruleList lists the rules of the configuration. One goroutine uses it.
type ruleList struct {
	handler *Handler
	file    []rule // in the order of the files
	byName  map[string]rule

	domains      *envoy.Config // of the following
	domainRules  []rule
	domainByName map[string]rule
	paths        map[string]rule // of values below them, as they were asked for
}

// maxPaths is how many paths of values are remembered.
const maxPaths = 10_000

// refresh reads the rules again.
func (l *ruleList) refresh() {
	l.file, l.byName = l.file[:0], make(map[string]rule, len(l.byName))
	for _, r := range l.handler.options.Engine.Rules() {
		shown := rule{r.Name, kindRule, r.Mode.String(), r.FileMode.String()}
		l.file = append(l.file, shown)
		l.byName[r.Name] = shown
	}
	c := l.handler.options.Domains.Config()
	if c == l.domains && l.paths != nil {
		return
	}
	l.domains, l.domainRules = c, nil
	l.domainByName, l.paths = map[string]rule{}, map[string]rule{}
	if c == nil {
		return
	}
	for _, r := range c.Rules() {
		shown := domainRule(ruleID{r.Domain, r.Path}.String(), r.Shadow)
		l.domainRules = append(l.domainRules, shown)
		l.domainByName[shown.Name] = shown
	}
}

// size returns how many rules there are.
func (l *ruleList) size() int { return len(l.byName) + len(l.domainByName) }

// has reports whether a rule is in the configuration.
func (l *ruleList) has(name string) bool {
	_, ofFile := l.byName[name]
	_, ofDomain := l.domainByName[name]
	return ofFile || ofDomain
}

// first returns about n rules, in the order of the files.
func (l *ruleList) first(n int) []rule {
	list := l.file[:min(len(l.file), n)]
	return append(slices.Clip(list), l.domainRules[:min(len(l.domainRules), n-len(list))]...)
}

func domainRule(name string, shadow bool) rule {
	mode := rules.Enforce
	if shadow {
		mode = rules.Shadow
	}
	return rule{name, kindDomain, mode.String(), mode.String()}
}

// find returns what is known about the rule name, which may not be in the list: one that was
// removed, or a path of values below the rule of a domain.
func (l *ruleList) find(name string) rule {
	if r, ok := l.byName[name]; ok {
		return r
	}
	if r, ok := l.domainByName[name]; ok {
		return r
	}
	if !strings.Contains(name, "/") {
		return rule{name, kindRule, rules.Enforce.String(), rules.Enforce.String()}
	}
	if r, ok := l.paths[name]; ok {
		return r
	}
	found, length := domainRule(name, false), -1
	for _, r := range l.domainRules {
		before, _, _ := strings.Cut(r.Name, "*") // a value may stand for it
		if len(before) > length && strings.HasPrefix(name, before) {
			found, length = rule{name, r.Kind, r.Mode, r.FileMode}, len(before)
		}
	}
	if len(l.paths) < maxPaths {
		l.paths[name] = found
	}
	return found
}
