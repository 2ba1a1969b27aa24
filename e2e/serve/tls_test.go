package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign writes a certificate for 127.0.0.1 and its key to dir, whole files at a time.
func (a *authority) sign(t *testing.T, dir string, serial int64) tls.Certificate {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "headgate"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	replace(t, filepath.Join(dir, "tls.crt"), string(certPEM))
	replace(t, filepath.Join(dir, "tls.key"), string(keyPEM))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// serial returns the serial number of the certificate of a listener.
func serial(t *testing.T, address string, config *tls.Config) int64 {
	t.Helper()
	c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// Certificates that change under load are served to new connections within ten seconds, and no
// request fails, over open connections or new ones. Clients must show a certificate.
func TestCertificatesChangeUnderLoad(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	mine := a.sign(t, t.TempDir(), 1000)
	a.sign(t, dir, 1)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	text := rules("closed", 2000) + fmt.Sprintf(
		"tls: {cert: %[1]s/tls.crt, key: %[1]s/tls.key, client_ca: %[1]s/ca.crt}\n", dir)
	s := serve(t, text)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{mine}, MinVersion: tls.VersionTLS12,
	}
	connect := func(reuse bool) *client {
		transport := &http.Transport{
			TLSClientConfig: config.Clone(), MaxIdleConnsPerHost: 1000, DisableKeepAlives: !reuse,
		}
		return newClientOver(t, "https://"+s.http, transport, s.grpc, credentials.NewTLS(config.Clone()))
	}
	var late lateness
	l := start([]*client{connect(true), connect(false)}, pick(100, 600), &late, ask)
	for n := range int64(pick(2, 10)) {
		l.lasts(t.Context(), 100*time.Millisecond)
		a.sign(t, dir, n+2)
		changed := time.Now()
		for _, address := range []string{s.http, s.grpc} {
			until(t, "changed", func() bool { return serial(t, address, config) == n+2 })
		}
		took := time.Since(changed).Round(time.Millisecond)
		t.Logf("certificate %d is served after %v", n+2, took)
		if took > 10*time.Second {
			t.Errorf("certificate %d is served after %v; want at most 10s", n+2, took)
		}
	}
	for _, r := range l.stop() {
		if r.err != nil {
			t.Errorf("a request failed: %v", r.err)
		}
	}
	stranger := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	c := newClientOver(t, "https://"+s.http, &http.Transport{TLSClientConfig: stranger}, s.grpc,
		credentials.NewTLS(stranger))
	if a := c.take(t.Context(), "api"); a.err == nil {
		t.Error("a client without a certificate is answered over HTTP")
	}
	if a := c.limit(t.Context(), 0, "wide"); a.err == nil {
		t.Error("a client without a certificate is answered over gRPC")
	}
}
