package config

import (
	"slices"
	"strconv"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// crossCheck checks what only all files together can show.
func (l *loader) crossCheck() {
	l.checkOverrides()
	l.checkTLS()
	domains, err := envoy.NewConfig(l.config.Domains, l.mergeDomains)
	if err != nil {
		l.faults = append(l.faults, err)
	}
	l.config.domains = domains
}

// checkOverrides checks that there are the rules of overrides, and that they have such keys.
func (l *loader) checkOverrides() {
	byName := map[string]*rules.Rule{}
	for i := range l.config.Rules {
		byName[l.config.Rules[i].Name] = &l.config.Rules[i]
	}
	for i, o := range l.config.Overrides {
		rule, at := byName[o.Rule], l.overrides[i]
		switch {
		case o.Rule == "" || o.Key == "": // which has been reported
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
