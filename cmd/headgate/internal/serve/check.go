package serve

import (
	"errors"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
)

// Check reads the files as Run does, and returns what they say. The error joins all faults. It also
// reads the certificates that the files name, because Run fails without them.
func Check(files []string, e *environment.Settings) (string, error) {
	s := server{o: Options{Files: files}, env: e}
	var err error
	if s.first, err = config.Load(files, s.loadOptions()); err != nil {
		return "", err
	}
	err = certs.Check(s.certificates())
	if e != nil {
		err = errors.Join(err, certs.Check(s.grpcCertificates()))
	}
	if err != nil {
		return "", err
	}
	return s.first.Report(), nil
}
