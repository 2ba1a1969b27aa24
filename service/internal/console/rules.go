package console

import (
	"strings"

	"github.com/headgate/headgate/service/internal/envoy"
	"github.com/headgate/headgate/service/internal/rules"
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
	list    []rule // in the order of the files
	byName  map[string]rule

	domains     *envoy.Config // of domainRules
	domainRules []rule
	paths       map[string]rule // of values below the rules of domains, as they were asked for
}

// maxPaths is how many paths of values are remembered.
const maxPaths = 10_000

// refresh reads the rules again.
func (l *ruleList) refresh() {
	l.list, l.byName = l.list[:0], make(map[string]rule, len(l.byName))
	for _, r := range l.handler.options.Engine.Rules() {
		l.list = append(l.list, rule{r.Name, kindRule, r.Mode.String(), r.FileMode.String()})
	}
	if c := l.handler.options.Domains.Config(); c != l.domains || l.paths == nil {
		l.domains, l.paths, l.domainRules = c, map[string]rule{}, nil
		if c != nil {
			for _, r := range c.Rules() {
				l.domainRules = append(l.domainRules, domainRule(ruleID{r.Domain, r.Path}.String(), r.Shadow))
			}
		}
	}
	l.list = append(l.list, l.domainRules...)
	for _, r := range l.list {
		l.byName[r.Name] = r
	}
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
