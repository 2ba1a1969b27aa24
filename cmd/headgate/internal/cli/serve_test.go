//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

// server is a headgate serve that runs.
type server struct {
	t         *testing.T
	cmd       *osexec.Cmd
	addresses map[string]string // of its listeners
	out       bytes.Buffer

	mu   sync.Mutex
	log  []string
	done chan struct{} // closed when its log ends
}

// serveOn are flags for listeners on free ports.
var serveOn = []string{
	"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--debug", "127.0.0.1:0",
	"--log-format", "json",
}

// startServer starts the program under a name, and waits until it listens. It ends with the test.
func startServer(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addresses: make(map[string]string), done: make(chan struct{})}
	s.cmd = osexec.CommandContext(t.Context(), self)
	s.cmd.Args = args
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout = &s.out
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.done; _ = s.cmd.Wait() })
	listening := make(chan struct{})
	go s.read(stderr, listening)
	select {
	case <-listening:
	case <-s.done:
		t.Fatalf("the server ended: %s", s.logged())
	}
	return s
}

// read reads the log until it ends. The gRPC listener is the last that is named.
func (s *server) read(r io.Reader, listening chan<- struct{}) {
	defer close(s.done)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		s.mu.Lock()
		s.log = append(s.log, lines.Text())
		s.mu.Unlock()
		var entry struct {
			Msg      string `json:"msg"`
			Listener string `json:"listener"`
			Address  string `json:"address"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "listening" {
			s.addresses[entry.Listener] = entry.Address
			if entry.Listener == "grpc" {
				close(listening)
			}
		}
	}
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

// end sends a signal, and returns the exit code.
func (s *server) end(signal os.Signal) int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	<-s.done
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// get returns the status and the body of a page of a listener.
func (s *server) get(listener, path string) (int, string) {
	s.t.Helper()
	return s.do(http.MethodGet, listener, path, "")
}

// do returns the status and the body of the answer to a request.
func (s *server) do(method, listener, path, body string) (int, string) {
	s.t.Helper()
	url := "http://" + s.addresses[listener] + path
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil { //nolint:gosec,nolintlint // of the test
		t.Fatal(err)
	}
	return name
}

const edgeRequest = `{"domain": "edge", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`

// The commands that a server without files prints work as they stand.
func TestServeHints(t *testing.T) {
	t.Parallel()
	curl, err := osexec.LookPath("curl")
	if err != nil {
		t.Fatalf("%v; install curl", err)
	}
	s := startServer(t, nil, append([]string{"headgate"}, serveOn...)...)
	eventually.True(t, "the hints are printed", func() bool {
		code, _ := s.get("http", "/healthcheck")
		return code == 200
	})
	if code := s.end(os.Interrupt); code != 0 {
		t.Fatalf("exit %d: %s", code, s.logged())
	}
	text := s.out.String()
	page, err := os.ReadFile("../../../../docs/serve/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), strings.ReplaceAll(text, s.addresses["http"], "127.0.0.1:8080")) {
		t.Errorf("docs/serve/README.md does not have what is printed:\n%s", text)
	}
	again := startServer(t, nil, append([]string{"headgate"}, serveOn...)...)
	text = strings.ReplaceAll(text, s.addresses["http"], again.addresses["http"])
	wants := []string{"200 OK", `"allowed":true`, "headgate_build_info"}
	n := 0
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "curl ")
		if !ok {
			continue
		}
		if n == len(wants) {
			t.Fatalf("more commands than expected: %s", text)
		}
		out, err := osexec.CommandContext(t.Context(), "sh", "-c", curl+" -s "+command).CombinedOutput()
		if err != nil || !strings.Contains(string(out), wants[n]) {
			t.Errorf("curl %s: %v\n%s\nwant %s in it", command, err, out, wants[n])
		}
		n++
	}
	if n != len(wants) {
		t.Errorf("%d commands are printed, want %d:\n%s", n, len(wants), text)
	}
}

// The curl command of the README gets the answer that stands there.
func TestReadmeServe(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	session := regexp.MustCompile("```console\n\\$ (curl .*)\n(.*\n)```").FindSubmatch(readme)
	if session == nil {
		t.Fatal("the README has no curl command")
	}
	s := startServer(t, nil, append([]string{"headgate"}, serveOn...)...)
	command := strings.Replace(string(session[1]), "127.0.0.1:8080", s.addresses["http"], 1)
	out, err := osexec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "curl", "curl -s", 1)).Output()
	if err != nil || string(out) != string(session[2]) {
		t.Errorf("%s: %v\n%s\nthe README says\n%s", command, err, out, session[2])
	}
}

// A Redis that is down at the start is one line; what is answered is up to the policy.
func TestServeWithoutRedis(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"closed": 503, "open": 200, "share": 503} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, filepath.Join(t.TempDir(), "rules.yaml"), "when_store_fails: "+policy+
				"\nrules: [{name: a-"+policy+", key: ip, limits: 100/m}]\n")
			s := startServer(t, nil, append([]string{"headgate"}, append(serveOn,
				"--config", file, "--store", "redis://u:secret@127.0.0.1:1")...)...)
			eventually.True(t, "the failure is logged", func() bool {
				return strings.Contains(s.logged(), "the store does not answer")
			})
			if code, body := s.get("http", "/auth/a-"+policy); code != want {
				t.Errorf("%d %s, want %d", code, body, want)
			}
			if code, body := s.get("http", "/healthcheck"); code != 200 {
				t.Errorf("not ready: %d %s", code, body)
			}
			if _, body := s.get("http", "/metrics"); !strings.Contains(body, "headgate_store_up 0") {
				t.Error("headgate_store_up is not 0")
			}
			if strings.Contains(s.logged(), "secret") {
				t.Error("the password is logged")
			}
		})
	}
}

// The files are read again when they change, and a bad one changes nothing.
func TestServeReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "edge.yaml")
	limit := func(n string) string {
		return "domain: edge\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: " + n + "}}]\n"
	}
	writeFile(t, file, limit("5"))
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", file)...)...)
	limits := func() string { _, body := s.get("debug", "/rlconfig"); return body }
	if got := limits(); !strings.Contains(got, "requests_per_unit=5,") {
		t.Fatalf("%s", got)
	}
	writeFile(t, file, limit("7"))
	eventually.True(t, "the change is in force", func() bool {
		return strings.Contains(limits(), "requests_per_unit=7,")
	})
	writeFile(t, file, limit("many"))
	code, body := s.do(http.MethodPost, "http", "/-/reload", "")
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, "edge.yaml:2:") {
		t.Errorf("a bad file: %d %s", code, body)
	}
	if got := limits(); !strings.Contains(got, "requests_per_unit=7,") {
		t.Errorf("after a bad file: %s", got)
	}
	if _, body := s.get("http", "/metrics"); !strings.Contains(body, "headgate_config_last_load_success 0") {
		t.Error("the metrics do not show the bad file")
	}
	writeFile(t, file, limit("9"))
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "SIGHUP is followed", func() bool {
		return strings.Contains(limits(), "requests_per_unit=9,")
	})
}

// Without --envoy-env, the variables of envoyproxy/ratelimit that are set are named in one warning.
func TestServeNamesIgnoredVariables(t *testing.T) {
	t.Parallel()
	const warning = "have no effect without --envoy-env"
	env := []string{"RUNTIME_ROOT=/data", "LOG_LEVEL=debug", "REDIS_URL=redis:6379"}
	s := startServer(t, env, append([]string{"headgate"}, serveOn...)...)
	if log := s.logged(); strings.Count(log, warning) != 1 ||
		!strings.Contains(log, `"variables":"LOG_LEVEL, REDIS_URL, RUNTIME_ROOT"`) {
		t.Errorf("log:\n%s", log)
	}
	for flag, env := range map[string][]string{
		"--console=on": {"LOG_LEVEL=debug", "PORT=80", "REDIS_URL=redis:6379"}, // of other programs
		"--envoy-env":  {"LOG_LEVEL=info", "RUNTIME_ROOT=" + t.TempDir()},
	} {
		args := append(append([]string{"headgate"}, serveOn...), flag)
		if log := startServer(t, env, args...).logged(); strings.Contains(log, warning) {
			t.Errorf("%s %v:\n%s", flag, env, log)
		}
	}
}

// As ratelimit it waits for its Redis and its configuration, and counts under the old names.
func TestServeAsRatelimit(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	redis := redistest.Start(t)
	env := []string{
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1",
		"DEBUG_PORT=0", "LOG_LEVEL=INFO", "LOG_FORMAT=json", "USE_STATSD=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr, "RUNTIME_ROOT=" + root,
		"RUNTIME_SUBDIRECTORY=ratelimit", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0",
		"PROMETHEUS_PATH=/prom",
	}
	s := startServer(t, env, "/bin/ratelimit")
	if code, body := s.get("http", "/healthcheck"); code != 500 || !strings.Contains(body, "not loaded") {
		t.Errorf("without a configuration: %d %s", code, body)
	}
	eventually.True(t, "the missing directory is logged", func() bool {
		return strings.Contains(s.logged(), "no such file")
	})
	if n := strings.Count(s.logged(), "no such file"); n != 1 {
		t.Errorf("the missing directory is logged %d times:\n%s", n, s.logged())
	}
	if err := os.MkdirAll(filepath.Join(root, "ratelimit", "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "ratelimit", "config", "edge.yaml"),
		"domain: edge\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 2}}]\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it is ready", func() bool { code, _ := s.get("http", "/healthcheck"); return code == 200 })
	for i, want := range []int{200, 200, 429} {
		if code, body := s.do(http.MethodPost, "http", "/json", edgeRequest); code != want {
			t.Errorf("request %d: %d %s, want %d", i, code, body, want)
		}
	}
	if _, body := s.get("debug", "/stats"); !strings.Contains(body, "ratelimit.service.rate_limit.edge.k.over_limit: 1\n") {
		t.Errorf("statistics: %s", body)
	}
	want := `ratelimit_service_rate_limit_total_hits{domain="edge",key1="k",key2=""} 3`
	if _, body := s.get("metrics", "/prom"); !strings.Contains(body, want) {
		t.Errorf("metrics: %s", body)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d: %s", code, s.logged())
	}
}

// As ratelimit it logs that Redis is gone when the first request fails, and that it answers again.
func TestServeAsRatelimitWhileRedisIsGone(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	file := writeFile(t, filepath.Join(t.TempDir(), "edge.yaml"),
		"domain: edge\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 2}}]\n")
	s := startServer(t, []string{
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1",
		"DEBUG_PORT=0", "LOG_LEVEL=INFO", "LOG_FORMAT=json", "USE_STATSD=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + proxy.Addr,
	}, "/bin/ratelimit", "--config", file)
	eventually.True(t, "it is ready", func() bool { code, _ := s.get("http", "/healthcheck"); return code == 200 })
	proxy.Cut(1)
	if code, body := s.do(http.MethodPost, "http", "/json", edgeRequest); code != http.StatusBadRequest {
		t.Errorf("without Redis: %d %s", code, body)
	}
	eventually.True(t, "the failure is logged", func() bool {
		return strings.Contains(s.logged(), "the store does not answer")
	})
	proxy.Heal()
	eventually.True(t, "the recovery is logged", func() bool {
		return strings.Contains(s.logged(), "the store decides again")
	})
	if code, body := s.do(http.MethodPost, "http", "/json", edgeRequest); code != http.StatusOK {
		t.Errorf("with Redis: %d %s", code, body)
	}
}

// Durations in the log are seconds in JSON, and a wait without end is left out.
func TestLogDurations(t *testing.T) {
	t.Parallel()
	for json, want := range map[bool]string{
		true: `"msg":"m","after":1.5}`, false: "retry_after=never after=1.5s",
	} {
		var log bytes.Buffer
		newLog(&log, slog.LevelInfo, json).Info("m", "retry_after", headgate.Never,
			"after", 1500*time.Millisecond)
		if !strings.HasSuffix(log.String(), want+"\n") {
			t.Errorf("%s; want %s", log.String(), want)
		}
	}
}

// selfSigned returns a certificate for name and its key, in PEM.
func selfSigned(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// What is printed without files names the store.
func TestServeHintsNameTheStore(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil, append([]string{"headgate"},
		append(serveOn, "--store", "redis://u:secret@127.0.0.1:1")...)...)
	s.end(os.Interrupt)
	if text := s.out.String(); !strings.Contains(text, "for each key, kept in redis://u:...@127.0.0.1:1.") {
		t.Errorf("%s", text)
	}
}

// A SIGHUP while the server starts does not end the process, and is not lost.
func TestEarlyHangup(t *testing.T) {
	reload := hangups()
	defer signal.Stop(reload)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := self.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		<-reload
	}
}
