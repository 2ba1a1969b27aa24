package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// crossCheck checks what only all files together can show.
func (l *loader) crossCheck() {
	l.shareReply()
	l.checkOverrides()
	l.checkTLS()
	domains, err := envoy.NewConfig(l.config.Domains, l.mergeDomains)
	if err != nil {
		l.faults = append(l.faults, err)
	}
	l.config.domains = domains
}

// shareReply gives the reply of the files to the rules, except what they have themselves.
func (l *loader) shareReply() {
	for i, all := 0, &l.config.Reply; i < len(l.rules); i++ {
		own, n := &l.config.Rules[i].Reply, l.rules[i].node
		if !has(n, "header_fields") {
			own.Hides = all.Hides
		}
		if !has(n, "retry_jitter") {
			own.Jitter = all.Jitter
		}
		if !has(n, "denial") {
			own.Denial = all.Denial
		}
	}
}

// checkOverrides checks that there are the rules of overrides, that they have such keys, and that
// each key has one override.
func (l *loader) checkOverrides() {
	byName, given := map[string]*rules.Rule{}, map[[2]string]Place{}
	for i := range l.config.Rules {
		byName[l.config.Rules[i].Name] = &l.config.Rules[i]
	}
	for i, o := range l.config.Overrides {
		rule, at := byName[o.Rule], l.overrides[i]
		id := [2]string{o.Rule, o.Key}
		first, twice := given[id]
		given[id] = at.Place
		switch {
		case o.Rule == "" || o.Key == "": // which has been reported
		case twice:
			l.fault(at.Place, at.field+".key", fmt.Sprintf("%q of rule %q is also given at %s; "+
				"want one override of each key", o.Key, o.Rule, first))
		case rule == nil:
			l.fault(at.Place, at.field+".rule", strconv.Quote(o.Rule)+
				" is not the name of a rule; want one that is in the files")
		case !slices.Equal(rule.Key, unknownKey):
			if err := rule.CheckKey(o.Key); err != nil {
				l.fault(at.Place, at.field+".key", err.Error())
			}
		}
	}
}

// checkTLS checks that of the files of certificates none is missing.
func (l *loader) checkTLS() {
	tls := l.config.TLS
	for _, pair := range []struct{ given, needs, value, other string }{
		{"tls.cert", "tls.key", tls.Cert, tls.Key},
		{"tls.key", "tls.cert", tls.Key, tls.Cert},
		{"tls.client_ca", "tls.cert", tls.ClientCA, tls.Cert},
	} {
		if _, failed := l.set[pair.needs]; pair.value != "" && pair.other == "" && !failed {
			l.fault(l.set[pair.given], pair.given, "needs "+pair.needs+"; want both")
		}
	}
}
