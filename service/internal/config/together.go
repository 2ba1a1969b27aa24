package config

import (
	"fmt"
	"strconv"

	"github.com/headgate/headgate/service/internal/envoy"
)

func wantTime(text string) error {
	return fmt.Errorf("%q is not a time; want one such as 2027-01-01T00:00:00Z", text)
}

// checkTogether checks what only all files together can show.
func (l *loader) checkTogether() {
	for i, o := range l.config.Overrides {
		if _, known := l.named[o.Rule]; !known && o.Rule != "" {
			l.fault(l.overrides[i], "overrides", strconv.Quote(o.Rule)+
				" is not the name of a rule; want one that is in the files")
		}
	}
	l.checkTLS()
	if _, err := envoy.NewConfig(l.config.Domains, l.mergeDomains); err != nil {
		l.faults = append(l.faults, err)
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
