//go:build gateways

package gateways

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	limits "github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
)

// redisProxy is the configuration of an Envoy that spreads keys over Redis servers: its own
// address and theirs.
const redisProxy = `
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.redis_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
          stat_prefix: redis
          settings: {op_timeout: 5s, enable_hashtagging: true}
          prefix_routes: {catch_all_route: {cluster: redis}}
  clusters:
  - name: redis
    type: STATIC
    lb_policy: MAGLEV
    load_assignment:
      cluster_name: redis
      endpoints:
      - lb_endpoints:
%s`

// envoy is the program that scripts/deps has installed, and oldEnvoy one of a year ago.
func envoy() string { return installed("envoy") }

func oldEnvoy() string { return installed("envoy-old") }

func installed(name string) string {
	path, err := filepath.Abs("testdata/" + name + "/bin/envoy")
	if err != nil {
		panic(err)
	}
	return path
}

// startEnvoy runs an Envoy in front of so many Redis servers, and returns its address.
func startEnvoy(t *testing.T, n int) (address string, servers []*redistest.Server) {
	t.Helper()
	var endpoints strings.Builder
	for range n {
		s := redistest.Start(t)
		servers = append(servers, s)
		_, port, _ := strings.Cut(s.Addr, ":")
		fmt.Fprintf(&endpoints, "        - endpoint: {address: {socket_address: "+
			"{address: 127.0.0.1, port_value: %s}}}\n", port)
	}
	address = freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	dir := directory(t)
	text := fmt.Sprintf(redisProxy, port, endpoints.String())
	if err := os.WriteFile(filepath.Join(dir, "envoy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, envoy(), "-c", "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "2",
		"--log-level", "error")
	until(t, "Envoy listens", func() bool { return reachable(t, address) })
	return address, servers
}

// With redis+proxy://, 48 clients of two stores get what the limit grants to each of 20 keys, however
// many servers are behind Envoy.
func TestLimitsBehindRedisProxy(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			envoy, _ := startEnvoy(t, n)
			for key, got := range load(t, envoy, func(err error) { t.Error(err) }, func() {}) {
				if got != 100 {
					t.Errorf("key %d: granted %d; want 100", key, got)
				}
			}
		})
	}
}

// A server behind Envoy that is killed under load costs its own keys their answers, and no key gets
// more than its limit.
func TestServerBehindRedisProxyIsKilled(t *testing.T) {
	envoy, servers := startEnvoy(t, 3)
	granted := load(t, envoy, func(error) {}, servers[1].Stop)
	whole := 0
	for key, got := range granted {
		if got > 100 {
			t.Errorf("key %d: granted %d of 100", key, got)
		} else if got == 100 {
			whole++
		}
	}
	if whole == 0 || whole == len(granted) {
		t.Errorf("%d of %d keys got all: %v", whole, len(granted), granted)
	}
}

// load takes 240 times from each of 20 keys, by 48 clients of two stores, and returns how often that
// was granted. failed gets the errors. When a third is done, it calls middle.
func load(t *testing.T, envoy string, failed func(error), middle func()) []int64 {
	t.Helper()
	stores := []*redisstore.Store{openProxied(t, envoy), openProxied(t, envoy)}
	limit := limits.PerDay(100)
	granted := make([]int64, 20)
	var sent atomic.Int64
	var clients sync.WaitGroup
	for client := range 48 {
		clients.Go(func() {
			for i := range 100 {
				if sent.Add(1) == 1600 {
					middle()
				}
				key := (client + i) % len(granted)
				r := limits.Request{Key: strconv.Itoa(key), Limit: limit, Cost: 1}
				d, err := stores[client%2].Take(t.Context(), r)
				if err != nil {
					failed(err)
				} else if d.Allowed() {
					atomic.AddInt64(&granted[key], 1)
				}
			}
		})
	}
	clients.Wait()
	return granted
}

// With redis://, the server does not start if there are several servers behind Envoy. It does if they
// are too slow to answer, as on a busy machine.
func TestRedisProxyIsRefused(t *testing.T) {
	for _, n := range []int{2, 3} {
		envoy, _ := startEnvoy(t, n)
		dir := directory(t)
		until(t, "the server refuses", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			serve := exec.CommandContext(ctx, headgate, "serve", "--store", "redis://"+envoy,
				"--http", "127.0.0.1:0", "--grpc", "off", "--debug", "off")
			serve.Dir = dir
			out, err := serve.CombinedOutput()
			return err != nil && strings.Contains(string(out), "use redis+proxy://")
		})
	}
}

// Two servers with redis+proxy:// share a limit and a ban.
func TestServeBehindRedisProxy(t *testing.T) {
	envoy, _ := startEnvoy(t, 2)
	dir := directory(t)
	rules := "rules:\n  - {name: day, key: [ip], limits: [5/d]}\n"
	if err := os.WriteFile(filepath.Join(dir, "headgate.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	store := "redis+proxy://" + envoy
	instances := []string{startHeadgate(t, dir, "--store", store), startHeadgate(t, dir, "--store", store)}
	send := func(i int, method, path, body string) (status int, answer string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+instances[i]+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	const take = `{"rule": "day", "key": "ip:192.0.2.1"}`
	for i := range 2 {
		want := `"remaining":` + strconv.Itoa(4-i)
		if _, answer := send(i, http.MethodPost, "/v1/take", take); !strings.Contains(answer, want) {
			t.Errorf("instance %d: %s; want %s", i, answer, want)
		}
	}
	ban := `{"rule": "day", "key": "ip:192.0.2.1", "ban": true}`
	if status, answer := send(0, http.MethodPut, "/v1/overrides", ban); status >= 300 {
		t.Fatalf("%d %s", status, answer)
	}
	until(t, "the other instance knows the ban", func() bool {
		_, answer := send(1, http.MethodPost, "/v1/take", take)
		return strings.Contains(answer, `"allowed":false`)
	})
}

func openProxied(t *testing.T, envoy string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open("redis+proxy://" + envoy + "?read_timeout=1m&dial_timeout=1m&prefix=" +
		t.Name() + ":")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The vectors of limits and the suite of permits pass behind Envoy.
func TestSuitesBehindRedisProxy(t *testing.T) {
	envoy, _ := startEnvoy(t, 2)
	t.Run("vectors", func(t *testing.T) { limittest.Vectors(t, openProxied(t, envoy)) })
	t.Run("permits", func(t *testing.T) {
		limittest.RunPermits(t, func(t *testing.T) concurrency.Store {
			t.Helper()
			return openProxied(t, envoy)
		})
	})
}

// The limits of a domain apply behind the page's Envoy.
func TestDescriptorsBehindEnvoy(t *testing.T) {
	t.Parallel()
	found := files(t, "envoy.md")
	g := gateways["Envoy"]
	found["headgate.yaml"] = edit(t, found["domain.yaml"], "unit: minute", "unit: hour")
	found["envoy.yaml"] = found["envoy-descriptors.yaml"]
	s := g.openWith(t, found)
	for _, left := range []string{"2", "1", "0"} {
		a := s.send(t, "GET", "/", nil)
		if a.StatusCode != http.StatusOK || a.Header.Get("X-Ratelimit-Remaining") != left {
			t.Errorf("%s %v; want %s left", a.Status, a.Header, left)
		}
	}
	a := s.send(t, "GET", "/", nil, forged...)
	if got := len(s.app.since()); a.StatusCode != http.StatusTooManyRequests || got != 3 ||
		a.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v; the app got %d requests", a.Status, a.Header, got)
	}
}

// With the page's lines for TLS, Envoy asks a Headgate with the certificate of that name, and no
// other one.
func TestEnvoyChecksTheCertificate(t *testing.T) {
	t.Parallel()
	cert, key := keyFiles(t)
	for name, want := range map[string]int{"example.com": 200, "headgate.example.org": 503} {
		found := files(t, "envoy.md")
		transport := edit(t, found["tls"], "exact: headgate.example.com", "exact: "+name)
		transport = edit(t, transport, "/etc/envoy/headgate-ca.pem", cert)
		found["envoy.yaml"] = edit(t, found["envoy.yaml"], "  - name: headgate\n", "  - name: headgate\n"+transport)
		found["headgate.yaml"] = "tls: {cert: " + cert + ", key: " + key + "}\n" + found["headgate.yaml"]
		a := gateways["Envoy"].openWith(t, found).send(t, "GET", "/", nil)
		if limited := a.Header.Get("Ratelimit") != ""; a.StatusCode != want || limited != (want == 200) {
			t.Errorf("%s: %s %v; want %d", name, a.Status, a.Header, want)
		}
	}
}

// The page's lines for tokens count by the subject that Envoy has verified, whatever clients send.
func TestEnvoyCountsBySubject(t *testing.T) {
	t.Parallel()
	secret, encode := []byte("a secret of at least 32 bytes ..."), base64.RawURLEncoding.EncodeToString
	token := func(subject string) string {
		text := encode([]byte(`{"alg":"HS256","kid":"k"}`)) + "." +
			encode([]byte(`{"iss":"https://login.example.com","sub":"`+subject+`"}`))
		signed := hmac.New(sha256.New, secret)
		signed.Write([]byte(text))
		return "Authorization: Bearer " + text + "." + encode(signed.Sum(nil))
	}
	found := files(t, "envoy.md")
	filter := "          - name: envoy.filters.http.ext_authz\n"
	found["envoy.yaml"] = edit(t, found["envoy.yaml"], filter, found["jwt"]+filter)
	found["jwks.json"] = `{"keys":[{"kty":"oct","alg":"HS256","kid":"k","k":"` + encode(secret) + `"}]}`
	found["headgate.yaml"] = "rules: [{name: user, key: \"header:X-User\", limits: 2/h}]\n"
	s := gateways["Envoy"].openWith(t, found)
	for _, test := range []struct {
		token, user string
		want        int
	}{
		{token("ann"), "x", 200}, {token("ann"), "y", 200}, {token("ann"), "bob", 429}, {token("bob"), "ann", 200},
		{"Authorization: Bearer x", "bob", 401},
	} {
		if a := s.send(t, "GET", "/", nil, test.token, "X-User: "+test.user); a.StatusCode != test.want {
			t.Errorf("%.40s, X-User: %s: %s, want %d", test.token, test.user, a.Status, test.want)
		}
	}
}
