package console

import (
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// rule is a rule of the file, or a rule of a domain under the name of its statistics, DOMAIN/PATH.
type rule struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`      // rule or domain
	Mode     string `json:"mode"`      // in force; of domains, not known
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
	rules   []rule // in the order of the files
	byName  map[string]rule
	checks  map[string]func(key string) error // of the keys of a rule
}

// refresh reads the rules again.
func (l *ruleList) refresh() {
	l.rules, l.byName = l.rules[:0], make(map[string]rule, len(l.byName))
	l.checks = make(map[string]func(string) error, len(l.byName))
	for _, r := range l.handler.options.Engine.Rules() {
		l.rules = append(l.rules, rule{r.Name, kindRule, r.Mode.String(), r.FileMode.String()})
		l.checks[r.Name] = r.CheckKey
	}
	if c := l.handler.options.Domains.Config(); c != nil {
		for _, r := range c.Rules() {
			l.rules = append(l.rules, l.find(ruleID{r.Domain, r.Path}.String()))
		}
	}
	for _, r := range l.rules {
		l.byName[r.Name] = r
	}
}

// isForeign reports whether a rule makes no such keys.
func (l *ruleList) isForeign(rule, key string) bool {
	check := l.checks[rule]
	return check != nil && check(key) != nil
}

// find returns what is known about the rule name, which may not be in the list: one that was
// removed, or a path of values below the rule of a domain. No rule of the file has a slash.
func (l *ruleList) find(name string) rule {
	if r, ok := l.byName[name]; ok {
		return r
	}
	kind := kindRule
	if strings.Contains(name, "/") {
		kind = kindDomain
	}
	return rule{name, kind, rules.Enforce.String(), rules.Enforce.String()}
}
