package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/headgate/headgate/cmd/headgate/internal/regular"
)

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
