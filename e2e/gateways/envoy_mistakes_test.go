//go:build gateways

package gateways

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// logged is the log of a Headgate with files, and an Envoy in front of it, which gets requests until
// the log has want.
func logged(t *testing.T, found map[string]string, want string) {
	t.Helper()
	dir, grpc, web := directory(t), freeAddress(t), freeAddress(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	for name, text := range found {
		text = moved(moved(text, "8081", grpc), "8000", web)
		found[name] = moved(text, "3000", app.Listener.Addr().String())
	}
	write(t, dir, found)
	out := start(t, dir, headgate, "serve", "--config", "headgate.yaml", "--http", "off", "--grpc", grpc, "--debug", "off")
	until(t, "headgate listens", func() bool { return strings.Contains(out.String(), "listener=grpc") })
	start(t, dir, gateways["Envoy"].command...)
	until(t, "Envoy listens", func() bool { return reachable(t, web) })
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	until(t, "the log has "+want, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+web+"/login?a=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := client.Do(r); err == nil {
			_ = a.Body.Close()
		}
		return strings.Contains(out.String(), want)
	})
	if n := strings.Count(out.String(), "level=WARN"); n > 1 {
		t.Errorf("%d warnings:\n%s", n, out)
	}
}

// keyFiles writes a certificate of example.com with its key.
func keyFiles(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	pair := s.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// What makes limits of Envoy have no effect is in the log of Headgate.
func TestMistakesAreLogged(t *testing.T) {
	t.Parallel()
	const (
		cluster   = "  - name: headgate\n"
		transport = "    transport_socket:\n      name: envoy.transport_sockets.tls\n      typed_config:\n" +
			"        \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\n"
	)
	cert, key := keyFiles(t)
	for want, change := range map[string]func(t *testing.T, found map[string]string){
		"the client uses HTTP/1": func(t *testing.T, found map[string]string) {
			found["envoy.yaml"] = cut(t, found["envoy.yaml"], "    typed_extension_protocol_options:",
				"    load_assignment:\n      cluster_name: headgate", "")
		},
		"the client uses TLS": func(t *testing.T, found map[string]string) {
			found["envoy.yaml"] = edit(t, found["envoy.yaml"], cluster, cluster+transport)
		},
		"the client does not use TLS": func(_ *testing.T, found map[string]string) {
			found["headgate.yaml"] = "tls: {cert: " + cert + ", key: " + key + "}\ndomains:\n- " +
				strings.ReplaceAll(strings.TrimSpace(found["domain.yaml"]), "\n", "\n  ") + "\n"
		},
		"the TLS handshake failed": func(t *testing.T, found map[string]string) {
			found["headgate.yaml"] = "tls: {cert: " + cert + ", key: " + key + ", client_ca: " + cert + "}\n"
			found["envoy.yaml"] = edit(t, found["envoy.yaml"], cluster, cluster+transport+
				"        common_tls_context: {alpn_protocols: [h2]}\n")
		},
		"no file has the domain of a descriptor": func(t *testing.T, found map[string]string) {
			found["envoy.yaml"] = edit(t, found["envoy.yaml"], "domain: edge", "domain: egde")
		},
		// Two actions of one list are one descriptor, for which the file needs both levels.
		"domain=edge descriptor=\"remote_address=127.0.0.1|generic_key=all\"": func(t *testing.T, found map[string]string) {
			found["envoy.yaml"] = edit(t, found["envoy.yaml"], "- actions: [{remote_address: {}}]",
				"- actions: [{remote_address: {}}, {generic_key: {descriptor_value: all}}]")
		},
		"domain=edge descriptor=\"path=/login?a\\\\=1\"": func(t *testing.T, found map[string]string) {
			found["headgate.yaml"] = "domain: edge\ndescriptors: [{key: path, value: /login, limit: 5/h}]\n"
			found["envoy.yaml"] = edit(t, found["envoy.yaml"], "- actions: [{remote_address: {}}]",
				"- actions: [{request_headers: {header_name: \":path\", descriptor_key: path}}]")
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			found := files(t, "envoy.md")
			found["headgate.yaml"], found["envoy.yaml"] = found["domain.yaml"], found["envoy-descriptors.yaml"]
			change(t, found)
			logged(t, found, want)
		})
	}
}

// The wildcard in a path counts all queries together, and a rule does so without one.
func TestQueriesBuyNoBudget(t *testing.T) {
	t.Parallel()
	const actions = "- actions: [{request_headers: {header_name: \":path\", descriptor_key: path}}]"
	routes := "              - match: {prefix: /}\n                route:\n                  cluster: app\n" +
		"                  rate_limits:\n                  " + actions + "\n"
	s := openRoutes(t, routes, "domain: edge\ndescriptors:\n"+
		"  - {key: path, value: \"/login*\", share_threshold: true, limit: 2/d}\n")
	got := make([]int, 0, 4)
	for _, path := range []string{"/login", "/login?a", "/login?b", "/login/"} {
		got = append(got, s.send(t, "GET", path, nil).StatusCode)
	}
	if want := []int{200, 200, 429, 429}; !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}

// Behind a load balancer, the client is the address that the balancer has seen.
func TestEnvoyBehindABalancer(t *testing.T) {
	t.Parallel()
	found := files(t, "envoy.md")
	found["headgate.yaml"] = "trust: [127.0.0.2/32]\n" + found["headgate.yaml"]
	for name, s := range map[string]*site{
		"rules": gateways["Envoy"].openWith(t, found),
		"descriptors": openRoutes(t, "              - match: {prefix: /}\n                route:\n                  cluster: app\n"+
			"                  rate_limits: [{actions: [{remote_address: {}}]}]\n", "domain: edge\ndescriptors:\n"+
			"  - {key: remote_address, limit: 5/d}\n",
			"use_remote_address: true", "use_remote_address: true\n          xff_num_trusted_hops: 1"),
	} {
		for i := range 6 {
			send := func(forwarded string) int {
				return s.from(t, "127.0.0.2", strings.Replace(plain, "\r\n", "\r\nX-Forwarded-For: "+forwarded+"\r\n", 1))
			}
			a, b := send("203.0.113.1, 198.51.100.7"), send(fmt.Sprintf("198.51.100.7, 198.51.100.%d", i+10))
			if limited := a == http.StatusTooManyRequests; limited != (i == 5) || b != http.StatusOK {
				t.Errorf("%s %d: %d, another client: %d", name, i, a, b)
			}
		}
	}
}

// Which rule denied is in Envoy's access log. Requests that Envoy answers itself are asked about if
// they have a route, and an error of a check gets status_on_error.
func TestEnvoyAnswersItself(t *testing.T) {
	t.Parallel()
	found, log := files(t, "envoy.md"), filepath.Join(directory(t), "access.log")
	config := edit(t, found["envoy.yaml"], "              - match: {prefix: /}\n", `              - match: {path: /direct}
                direct_response: {status: 200}
              - match: {path: /wrong}
                route: {cluster: app}
                typed_per_filter_config:
                  envoy.filters.http.ext_authz:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                    check_settings: {context_extensions: {rule: none}}
              - match: {prefix: /app}
`)
	found["envoy.yaml"] = edit(t, config, "          stat_prefix: web\n", `          stat_prefix: web
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: `+log+`
              log_format:
                text_format_source:
                  inline_string: "%RESPONSE_CODE% %REQ(:PATH)% %DYNAMIC_METADATA(envoy.filters.http.ext_authz:rule)%\n"
`)
	s := gateways["Envoy"].openWith(t, found)
	for _, c := range []struct {
		path string
		want int
	}{
		{"/none", 404}, {"/none", 404}, // without a route, Envoy does not ask
		{"/wrong", 503},
		{"/direct", 200}, {"/direct", 200}, {"/direct", 200}, {"/app", 200}, {"/app", 200},
		{"/direct", 429}, {"/app", 429}, {"/none", 404},
	} {
		if got := s.send(t, "GET", c.path, nil); got.StatusCode != c.want {
			t.Errorf("%s: %s; want %d", c.path, got.Status, c.want)
		}
	}
	until(t, "the access log has the rule", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "429 /app address\n") &&
			strings.Contains(string(text), "404 /none -\n")
	})
}

// Over HTTP, a key by a field needs the field in allowed_headers: else all clients share one key.
// Without allowed_client_headers, all fields of a denial reach the client.
func TestFieldsOverHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []string
		want  []int
	}{
		"allowed":     {nil, []int{200, 200, 429}},
		"not allowed": {[]string{", {exact: x-api-key}", ""}, []int{200, 429, 429}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openHTTP(t, append(c.pairs, "                  allowed_client_headers:\n"+
				"                    patterns: [{prefix: ratelimit}, {prefix: x-ratelimit}, {exact: retry-after}, {exact: content-type}]\n", "")...)
			for i, key := range []string{"a", "b", "b"} {
				a := s.send(t, "GET", "/key", nil, "X-Api-Key: "+key)
				if a.StatusCode != c.want[i] || a.StatusCode == http.StatusTooManyRequests && a.Header.Get("Retry-After") == "" {
					t.Errorf("%d: %s %v; want %d", i, a.Status, a.Header, c.want[i])
				}
			}
		})
	}
}
