package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool(), file: filepath.Join(t.TempDir(), "ca.pem")}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	write(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate for name and its key to files.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certFile, "CERTIFICATE", der)
	write(t, keyFile, "PRIVATE KEY", private)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// handshake returns the certificate that a server of config shows, and the error of the server.
func handshake(t *testing.T, config, client *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	server := tls.Server(there, config)
	failed := make(chan error, 1)
	go func() {
		failed <- server.HandshakeContext(t.Context())
		there.Close()
	}()
	conn := tls.Client(here, client)
	_ = conn.HandshakeContext(t.Context())
	var shown *x509.Certificate
	if chain := conn.ConnectionState().PeerCertificates; len(chain) > 0 {
		shown = chain[0]
	}
	go func() { _, _ = conn.Read(make([]byte, 1)) }() // the server's last message
	return shown, <-failed
}

func TestReload(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	f := Files{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	ca.issue(t, "first.example", f.Cert, f.Key)
	moment := stat(t, f.Cert).ModTime()
	if err := os.Chtimes(f.Key, moment, moment); err != nil {
		t.Fatal(err)
	}
	r := &reloader{files: f, log: slog.New(slog.DiscardHandler), stamp: f.stamp()}
	var err error
	if r.config, err = r.load(); err != nil {
		t.Fatal(err)
	}
	name := func(at time.Time) string {
		c, err := x509.ParseCertificate(r.current(at).Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return c.DNSNames[0]
	}
	now := time.Now()
	if got := name(now); got != "first.example" {
		t.Errorf("at first: %s", got)
	}
	before := stat(t, f.Cert)
	for again := true; again; again = stat(t, f.Cert).Size() != before.Size() {
		ca.issue(t, "secnd.example", f.Cert, f.Key)
	}
	for _, file := range []string{f.Cert, f.Key} { // as if written in the same moment
		if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if got := name(now.Add(checkInterval / 2)); got != "first.example" {
		t.Errorf("files are compared too often: %s", got)
	}
	if got := name(now.Add(checkInterval)); got != "secnd.example" {
		t.Errorf("after a change: %s", got)
	}
	// A certificate whose key is not there yet changes nothing.
	ca.issue(t, "third.example", f.Cert, filepath.Join(dir, "later"))
	if got := name(now.Add(2 * checkInterval)); got != "secnd.example" {
		t.Errorf("with another key: %s", got)
	}
	if err := os.Rename(filepath.Join(dir, "later"), f.Key); err != nil {
		t.Fatal(err)
	}
	if got := name(now.Add(3 * checkInterval)); got != "third.example" {
		t.Errorf("with its key: %s", got)
	}
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestClients(t *testing.T) {
	ca, stranger, dir := newAuthority(t), newAuthority(t), t.TempDir()
	f := Files{
		Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: ca.file, ClientSAN: "envoy.example",
	}
	ca.issue(t, "limits.example", f.Cert, f.Key)
	config, err := New(f, slog.New(slog.DiscardHandler), "h2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		signer *authority // nil: no certificate
		want   string
	}{
		{"envoy.example", ca, ""},
		{"other.example", ca, `names ["other.example"]; want "envoy.example"`},
		{"envoy.example", stranger, "unknown authority"},
		{"", nil, "didn't provide a certificate"},
	} {
		client := &tls.Config{
			ServerName: "limits.example", RootCAs: ca.pool, NextProtos: []string{"h2"},
			MinVersion: tls.VersionTLS12,
		}
		if c.signer != nil {
			cert, key := filepath.Join(dir, "client"), filepath.Join(dir, "client.key")
			c.signer.issue(t, c.name, cert, key)
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			client.Certificates = []tls.Certificate{pair}
		}
		shown, err := handshake(t, config, client)
		if shown == nil || shown.DNSNames[0] != "limits.example" {
			t.Errorf("%s: the server showed %v", c.name, shown)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	ca.issue(t, "a.example", cert, key)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []Files{
		{Cert: cert, Key: "nowhere"},
		{Cert: empty, Key: key},
		{Cert: cert, Key: key, ClientCA: "nowhere"},
		{Cert: cert, Key: key, ClientCA: empty},
	} {
		if _, err := New(f, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), "tls: ") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// Check fails for files that New cannot use.
func TestCheck(t *testing.T) {
	at := t.TempDir()
	file := func(name string) string { return filepath.Join(at, name) }
	a := newAuthority(t)
	a.issue(t, "one", file("one.crt"), file("one.key"))
	a.issue(t, "two", file("two.crt"), file("two.key"))
	for _, c := range []struct {
		files Files
		want  string // empty: no error
	}{
		{Files{}, ""},
		{Files{Cert: file("one.crt"), Key: file("one.key"), ClientCA: a.file}, ""},
		{Files{Cert: file("one.crt"), Key: file("two.key")}, "private key does not match"},
		{Files{Cert: file("none.crt"), Key: file("one.key")}, "no such file"},
		{Files{Cert: file("one.crt"), Key: file("one.key"), ClientCA: file("one.key")}, "no certificate"},
	} {
		err := Check(c.files)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.files, err, c.want)
		}
	}
}
