package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// StartTLS is [Start] for a server that speaks TLS alone, and only with clients whose
// certificate its authority has signed. It returns the settings of such a client.
func StartTLS(tb testing.TB, args ...string) (*Server, *tls.Config) {
	tb.Helper()
	dir := tb.TempDir()
	a := newAuthority(tb)
	server, client := a.sign(tb, "server"), a.sign(tb, "client")
	own := []string{
		"--tls-ca-cert-file", writePEM(tb, dir, "ca", "CERTIFICATE", a.cert.Raw),
		"--tls-cert-file", writePEM(tb, dir, "cert", "CERTIFICATE", server.Certificate[0]),
		"--tls-key-file", writePEM(tb, dir, "key", "PRIVATE KEY", marshalKey(tb, server)),
		"--tls-auth-clients", "yes",
	}
	s, err := runKind(tb.Context(), kind{args: append(own, args...), tls: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return s, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots,
		Certificates: []tls.Certificate{client}}
}

// authority signs certificates that are good for an hour.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) authority {
	tb.Helper()
	template := template("authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	key := newKey(tb)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) sign(tb testing.TB, name string) tls.Certificate {
	tb.Helper()
	key := newKey(tb)
	der, err := x509.CreateCertificate(rand.Reader, template(name), a.cert, key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  []net.IP{net.ParseIP(loopback)},
	}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func marshalKey(tb testing.TB, c tls.Certificate) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func writePEM(tb testing.TB, dir, name, kind string, der []byte) string {
	tb.Helper()
	file := filepath.Join(dir, name+".pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}),
		0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}
