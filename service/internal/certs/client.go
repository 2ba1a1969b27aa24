package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
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
	certPEM, err := readRegular(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := readRegular(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// readRegular reads a regular file. Reading another kind, such as a named pipe, may never end, and
// a handshake waits for it.
func readRegular(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	return os.ReadFile(file)
}

// pool reads the certificates in a file.
func pool(file string) (*x509.CertPool, error) {
	pem, err := readRegular(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; want PEM", file)
	}
	return p, nil
}
