package serve

import (
	"errors"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// Check reads the files of o as Run does, and returns what they say. The error joins all faults. It
// also reads the certificates that the files name, because Run fails without them.
func Check(o Options) (string, error) {
	s := server{o: o, env: o.Environment}
	var err error
	if s.first, err = config.Load(o.Files, s.loadOptions()); err != nil {
		return "", err
	}
	err = certs.Check(s.first.TLS)
	if s.env != nil {
		err = errors.Join(err, certs.Check(s.grpcCertificates()))
	}
	if err != nil {
		return "", err
	}
	return s.first.Report(), nil
}
