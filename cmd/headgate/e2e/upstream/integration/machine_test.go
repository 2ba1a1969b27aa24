//go:build upstream

package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// machine runs what upstream's integration tests expect to find on the machine, at the ports that
// they expect: Redis servers with a password, replicas and sentinels, two clusters, TLS tunnels.
type machine struct {
	t    *testing.T
	dir  string
	path string // of the programs
}

const password = "password123"

func (m *machine) redises() {
	m.t.Helper()
	for _, port := range []string{"6381", "6382", "6361", "6392", "6397"} {
		m.redis(port)
	}
	m.redis("6393", "--replicaof", "127.0.0.1", "6392", "--masterauth", password)
	m.redis("6398", "--replicaof", "127.0.0.1", "6397", "--masterauth", password)
	for _, port := range three(26394) {
		m.sentinel(port, "6392")
	}
	for _, port := range three(26399) {
		m.sentinel(port, "6397")
	}
	m.cluster(three(6386))
	m.cluster(three(6389))
}

// redis starts a server at port.
func (m *machine) redis(port string, args ...string) {
	m.t.Helper()
	m.start(port, "redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--requirepass", password, "--save", "",
		"--dir", m.folder(port),
	}, args...)...)
}

func (m *machine) sentinel(port, primary string) {
	m.t.Helper()
	conf := filepath.Join(m.folder(port), "sentinel.conf")
	text := "port " + port + "\nbind 127.0.0.1\n" +
		"sentinel monitor mymaster 127.0.0.1 " + primary + " 2\n" +
		"sentinel auth-pass mymaster " + password + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.start(port, "redis-server", conf, "--sentinel")
}

// cluster starts a cluster of one server at each port.
func (m *machine) cluster(ports []string) {
	m.t.Helper()
	args := []string{"-a", password, "--no-auth-warning", "--cluster", "create"}
	for _, port := range ports {
		more := []string{"--cluster-enabled", "yes"}
		if connects("1" + port) { // another program has the port that servers use among themselves
			more = append(more, "--cluster-port", freePort(m.t))
		}
		m.redis(port, more...)
		args = append(args, "127.0.0.1:"+port)
	}
	cli := filepath.Join(m.path, "redis-cli")
	args = append(args, "--cluster-replicas", "0", "--cluster-yes")
	if out, err := exec.CommandContext(m.t.Context(), cli, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("redis-cli: %v\n%s", err, out)
	}
	m.until("the cluster at "+ports[0]+" is ready", func() bool {
		for _, port := range ports {
			out, err := exec.CommandContext(m.t.Context(), cli, "-a", password, "--no-auth-warning",
				"-p", port, "cluster", "info").Output()
			if err != nil || !bytes.Contains(out, []byte("cluster_state:ok")) {
				return false
			}
		}
		return true
	})
}

// tunnels starts the TLS tunnels to Redis servers, and returns the file of their certificate. The
// tests expect that and its key in the files cert.pem and key.pem too, for a client certificate.
func (m *machine) tunnels() string {
	m.t.Helper()
	cert, key := selfSigned(m.t)
	for name, text := range map[string][]byte{
		"cert.pem": cert, "key.pem": key, "private.pem": append(bytes.Clone(key), cert...),
	} {
		if err := os.WriteFile(filepath.Join(m.dir, name), text, 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	m.tunnel("16381", "6381", "")
	m.tunnel("16382", "6382", "")
	m.tunnel("16361", "6361", "verify = 2\nCAfile = "+filepath.Join(m.dir, "cert.pem")+"\n")
	return filepath.Join(m.dir, "cert.pem")
}

func (m *machine) tunnel(from, to, more string) {
	m.t.Helper()
	conf := filepath.Join(m.folder(from), "stunnel.conf")
	text := "foreground = yes\npid =\n" +
		"cert = " + filepath.Join(m.dir, "private.pem") + "\n[redis]\n" + more +
		"accept = 127.0.0.1:" + from + "\nconnect = 127.0.0.1:" + to + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.start(from, m.find("stunnel4", "stunnel"), conf)
}

func (m *machine) folder(name string) string {
	m.t.Helper()
	dir := filepath.Join(m.dir, "servers", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	return dir
}

// start runs a server until the test ends, and waits until it listens at port.
func (m *machine) start(port, program string, args ...string) {
	m.t.Helper()
	if !filepath.IsAbs(program) {
		program = filepath.Join(m.path, program)
	}
	if connects(port) {
		m.t.Fatalf("port %s is taken; upstream's tests need it", port)
	}
	cmd := exec.CommandContext(m.t.Context(), program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, up := &output{}, false
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !up {
			m.t.Logf("%s:\n%s", filepath.Base(program), out)
		}
	})
	m.until(filepath.Base(program)+" listens at "+port, func() bool { return connects(port) })
	up = true
}

// until waits until ready reports true.
func (m *machine) until(what string, ready func() bool) {
	m.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("waited 20 s until %s", what)
		}
	}
}

func connects(port string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := redistest.FreeAddr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}

// output keeps the end of what a program prints.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-2000):]
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text))
}

// selfSigned makes a certificate for localhost, and its key.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// three are three ports from first.
func three(first int) []string {
	return []string{strconv.Itoa(first), strconv.Itoa(first + 1), strconv.Itoa(first + 2)}
}
