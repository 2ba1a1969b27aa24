// Package certs makes the TLS configurations of listeners and clients from files, which are read
// again when they change.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/regular"
)

// Files name the files of a listener. All are in PEM.
type Files struct {
	Cert, Key string
	ClientCA  string // clients must show a certificate that it signed; empty: they need none
	ClientSAN string // a name that the certificate of a client must have; empty: any
}

// checkInterval is how often files are compared at most. A handshake waits for the comparison.
const checkInterval = time.Second

// New returns a configuration that follows f. It fails if the files cannot be used now; if they
// cannot be used later, the last good ones stay in use, and log gets one line.
func New(f Files, log *slog.Logger, protocols ...string) (*tls.Config, error) {
	r := &reloader{files: f, protocols: protocols, log: log, stamp: f.stamp(), checked: time.Now()}
	config, err := r.load()
	if err != nil {
		return nil, err
	}
	r.config = config
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return r.current(time.Now()), nil
		},
	}, nil
}

// Check returns the error of [New] for f, or nil if f names no certificate.
func Check(f Files) error {
	if f.Cert == "" {
		return nil
	}
	_, err := (&reloader{files: f}).load()
	return err
}

type reloader struct {
	files     Files
	protocols []string
	log       *slog.Logger

	mu      sync.Mutex
	config  *tls.Config
	stamp   string // of the files that config, or the last failure, came from
	checked time.Time
}

// current returns the configuration, read again if a file has changed.
func (r *reloader) current(now time.Time) *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.checked) < checkInterval {
		return r.config
	}
	r.checked = now
	stamp := r.files.stamp()
	if stamp == r.stamp {
		return r.config
	}
	r.stamp = stamp
	config, err := r.load()
	if err != nil {
		r.log.Error("the changed certificates are invalid; the old ones stay in use", "error", err)
		return r.config
	}
	r.log.Info("certificates were reloaded", "file", r.files.Cert)
	r.config = config
	return r.config
}

// stamp changes when a file does. Two versions of a file may have the same size and time.
func (f Files) stamp() string {
	var stamp strings.Builder
	for _, name := range []string{f.Cert, f.Key, f.ClientCA} {
		if text, err := regular.Read(name); err == nil {
			stamp.Write(text)
		}
		stamp.WriteByte(0)
	}
	return stamp.String()
}

func (r *reloader) load() (*tls.Config, error) {
	pair, err := keyPair(r.files.Cert, r.files.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: the certificate cannot be used: %w", err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   r.protocols,
		Certificates: []tls.Certificate{pair},
	}
	if r.files.ClientCA == "" {
		return config, nil
	}
	if config.ClientCAs, err = pool(r.files.ClientCA); err != nil {
		return nil, fmt.Errorf("tls: the authorities of clients cannot be read: %w", err)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if r.files.ClientSAN != "" {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return checkName(state.PeerCertificates, r.files.ClientSAN)
		}
	}
	return config, nil
}

// checkName returns an error unless the first of chain has the alternative name san.
func checkName(chain []*x509.Certificate, san string) error {
	if len(chain) == 0 {
		return errors.New("tls: the client presented no certificate")
	}
	c := chain[0]
	names := slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if !slices.Contains(names, san) {
		return fmt.Errorf("tls: the client's certificate has the names %q; want %q", names, san)
	}
	return nil
}

// Client returns a configuration for connections to a server. Its certificate must be signed by
// one in the file ca, or by one that the system trusts if ca is empty. The files cert and key, if
// any, hold the certificate that the client shows; they are read for each connection.
func Client(ca, cert, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		var err error
		if config.RootCAs, err = pool(ca); err != nil {
			return nil, fmt.Errorf("the authorities of servers cannot be read: %w", err)
		}
	}
	if cert == "" && key == "" {
		return config, nil
	}
	if _, err := keyPair(cert, key); err != nil {
		return nil, fmt.Errorf("the client's certificate cannot be used: %w", err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := keyPair(cert, key)
		return &pair, err
	}
	return config, nil
}

// keyPair reads a certificate and its key.
func keyPair(cert, key string) (tls.Certificate, error) {
	certPEM, err := regular.Read(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := regular.Read(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// pool reads the certificates in a file.
func pool(file string) (*x509.CertPool, error) {
	pem, err := regular.Read(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; want PEM", file)
	}
	return p, nil
}
