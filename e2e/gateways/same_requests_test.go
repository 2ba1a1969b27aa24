//go:build gateways

package gateways

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// ratelimit is the program of envoyproxy/ratelimit, which make upstream builds.
var ratelimit = flag.String("ratelimit", "", "a program that is asked the same")

// The same requests through a real Envoy get the same answers from headgate with a file of rules,
// from headgate with the variables of envoyproxy/ratelimit, and from that program, unless the table
// has two answers.
func TestSameRequests(t *testing.T) {
	t.Parallel()
	servers := map[string]startServer{
		"file": withFile, "variables": withVariables(headgate, "serve", "--envoy-env"),
	}
	if *ratelimit != "" {
		servers["upstream"] = withVariables(*ratelimit)
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rows []row
			hour := func() int64 { return time.Now().Unix() / 3600 }
			for began := int64(0); began != hour(); { // in a new hour, limits are new
				began = hour()
				rows = play(t, server, name == "upstream")
			}
			for _, r := range rows {
				t.Run(r.Name, r.compare)
			}
		})
	}
}

// row is a row of the table: an action or an option of Envoy, with requests and answers.
type row struct {
	Name      string
	Fields    map[string]string
	exchanges []*exchange
}

type exchange struct {
	request, want, got string
	until              bool // the request is repeated until it has this answer
}

func (r *row) compare(t *testing.T) {
	for i, s := range r.exchanges {
		if s.got != s.want {
			t.Errorf("answer %d, to %s\ngot  %s\nwant %s", i+1, s.request, s.got, s.want)
		}
	}
}

// usualFields are the fields of a row, and what they are if the row does not have them.
var usualFields = map[string]string{
	"without_upstream": "", "server": "plain", "descriptors": "{key: generic_key, value: a, 1/day}",
	"actions": "generic(a)", "limits": "", "host": "", "route": "", "per_route": "", "note": `""`, "before": "",
	"filter": "", "domain": "", "network": "",
	"x_ratelimit": "DRAFT_VERSION_03", "grpc_service": "",
}

// readRows returns the rows of the table, with the answers of headgate or of upstream.
func readRows(t *testing.T, upstream bool) []row {
	t.Helper()
	text, err := os.ReadFile("testdata/same_requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n\n") // the explanation comes first
	var rows []row
	for block := range strings.SplitSeq(strings.ReplaceAll(table, "\n\t", " "), "\n\n") {
		name, lines, _ := strings.Cut(strings.TrimSpace(block), "\n")
		r := row{Name: strings.TrimPrefix(name, "# "), Fields: maps.Clone(usualFields)}
		r.Fields["domain"] = strconv.Quote(r.Name)
		for line := range strings.SplitSeq(lines, "\n") {
			r.read(t, line, upstream)
		}
		if len(r.exchanges) == 0 {
			t.Fatalf("%s: no requests", r.Name)
		}
		if r.Fields["grpc_service"] == "" {
			r.Fields["grpc_service"] = "{envoy_grpc: {cluster_name: " + r.Fields["server"] + "}}"
		}
		if !upstream || r.Fields["without_upstream"] == "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// read reads a line of a row: requests with their answers, or a field.
func (r *row) read(t *testing.T, line string, upstream bool) {
	t.Helper()
	request, answers, ok := strings.Cut(line, " => ")
	if !ok {
		field, text, _ := strings.Cut(line, ": ")
		if _, known := usualFields[field]; !known {
			t.Fatalf("%s: no field: %q", r.Name, line)
		}
		r.Fields[field] = text
		return
	}
	request, until := strings.CutPrefix(request, "~ ")
	for answer := range strings.SplitSeq(answers, "; ") {
		answer, other, differs := strings.Cut(answer, " | ")
		if differs && upstream {
			answer = other
		}
		r.exchanges = append(r.exchanges, &exchange{request: request, want: answer, until: until})
	}
}

// abbreviations are what stands for longer YAML in the table.
var abbreviations = []struct {
	short *regexp.Regexp
	long  string
}{
	{regexp.MustCompile(`\b(\d+)/([a-z]+)\b`), "rate_limit: {requests_per_unit: $1, unit: $2}"},
	{regexp.MustCompile(`@([\w.]+)`), `"@type": type.googleapis.com/envoy.extensions.$1`},
	{regexp.MustCompile(`\bgeneric\((\w+)\)`), "{generic_key: {descriptor_value: $1}}"},
	{
		regexp.MustCompile(`\bheader\(([\w-]+), (\w+)\)`),
		"{request_headers: {header_name: $1, descriptor_key: $2}}",
	},
}

func writtenOut(text string) string {
	for _, a := range abbreviations {
		text = a.short.ReplaceAllString(text, a.long)
	}
	return text
}

// play runs two servers and an Envoy, and sends the requests of all rows.
func play(t *testing.T, server startServer, upstream bool) []row {
	t.Helper()
	rows := readRows(t, upstream)
	var domains []string
	for _, r := range rows {
		domains = append(domains, writtenOut(fmt.Sprintf("domain: %q\ndescriptors: [%s]\n",
			r.Name, r.Fields["descriptors"])))
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Tokens", r.Header.Get("X-Tokens"))
	}))
	t.Cleanup(app.Close)
	redis := redistest.Start(t).Addr
	urls := startRows(t, rows, map[string]string{
		"app":    app.Listener.Addr().String(),
		"plain":  server(t, redis, domains, false),
		"strict": server(t, redis, domains, true),
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, r := range rows {
		for _, s := range r.exchanges {
			s.got = ask(t, client, urls[r.Name], s.request)
			for range 1000 {
				if !s.until || s.got == s.want {
					break
				}
				time.Sleep(5 * time.Millisecond)
				s.got = ask(t, client, urls[r.Name], s.request)
			}
		}
	}
	return rows
}

// startServer runs a server for domains, and returns its address. A strict one charges all
// descriptors of a request or none, and caches denials. Others answer with dynamic metadata.
type startServer func(t *testing.T, redis string, domains []string, strict bool) string

func withFile(t *testing.T, redis string, domains []string, strict bool) string {
	t.Helper()
	options := "{dynamic_metadata: true}"
	if strict {
		options = "{all_or_none: true, local_cache_bytes: 1000000}"
	}
	var text strings.Builder
	text.WriteString("store_timeout: 9s\nenvoy: " + options + "\ndomains:\n")
	for _, one := range domains {
		text.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(one), "\n", "\n  ") + "\n")
	}
	dir := directory(t)
	write(t, dir, map[string]string{"headgate.yaml": text.String()})
	store := "redis://" + redis + "?read_timeout=9s&dial_timeout=9s"
	return startListener(t, dir, "grpc", "--store", store)
}

// withVariables starts a program with the variables of envoyproxy/ratelimit.
func withVariables(program ...string) startServer {
	return func(t *testing.T, redis string, domains []string, strict bool) string {
		t.Helper()
		dir := directory(t)
		if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
			t.Fatal(err)
		}
		files := make(map[string]string)
		for i, text := range domains {
			files[fmt.Sprintf("config/config.%d.yaml", i)] = text
		}
		write(t, dir, files)
		address := freeAddress(t)
		set := []string{
			"env", "RUNTIME_ROOT=" + filepath.Dir(dir), "RUNTIME_SUBDIRECTORY=" +
				filepath.Base(dir),
			"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis, "DISABLE_STATS=true",
			"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
			"GRPC_PORT=" + port(address), "PORT=" + port(freeAddress(t)),
			"DEBUG_PORT=" + port(freeAddress(t)), "RESPONSE_DYNAMIC_METADATA=true",
		}
		if strict {
			set = append(set, "RESPONSE_DYNAMIC_METADATA=false",
				"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", "LOCAL_CACHE_SIZE_IN_BYTES=1000000")
		}
		start(t, dir, append(set, program...)...)
		until(t, program[0]+" listens", func() bool { return reachable(t, address) })
		return address
	}
}

func port(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// rowsOfEnvoy is a configuration with a listener for each row.
var rowsOfEnvoy = template.Must(template.New("").Funcs(template.FuncMap{"port": port}).Parse(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
{{range .Rows}}
  - name: {{printf "%q" .Name}}
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
{{with .Fields}}{{if .network}}
      - name: ratelimit
        typed_config:
          @filters.network.ratelimit.v3.RateLimit
          stat_prefix: tcp
          domain: {{.domain}}
          descriptors: [{{.network}}]
          timeout: 9s
          rate_limit_service: {transport_api_version: V3, grpc_service: {{.grpc_service}}}
      - name: app
        typed_config: {@filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: tcp, cluster: app}
{{else}}
      - name: http
        typed_config:
          @filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http
          use_remote_address: true
          xff_num_trusted_hops: 1
          internal_address_config: {cidr_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}]}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              rate_limits: [{{.host}}]
              routes:
              - match: {prefix: /}
                route:
                  cluster: app
                  {{.route}}
                  rate_limits: [{{or .limits (printf "{actions: [%s]}" .actions)}}]
                metadata: {filter_metadata: {ns: {plan: silver}}}
                response_headers_to_add: [{header: {key: x-note, value: {{.note}}}}]
                typed_per_filter_config: {envoy.filters.http.ratelimit: {
                  @filters.http.ratelimit.v3.RateLimitPerRoute, {{.per_route}}}}
          http_filters:
          {{with .before}}- {{.}}{{end}}
          - name: envoy.filters.http.ratelimit
            typed_config: {@filters.http.ratelimit.v3.RateLimit, domain: {{.domain}}, timeout: 9s,
              rate_limit_service: {transport_api_version: V3, grpc_service: {{.grpc_service}}},
              enable_x_ratelimit_headers: {{.x_ratelimit}}, {{.filter}}}
          - {name: router, typed_config: {@filters.http.router.v3.Router}}
{{end}}{{end}}{{end}}
  clusters:
{{range $name, $address := .Servers}}
  - name: {{$name}}
    load_assignment:
      cluster_name: {{$name}}
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {
        address: 127.0.0.1, port_value: {{port $address}}}}}}]}]
{{if ne $name "app"}}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        @upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
{{end}}{{end}}`))

// startRows runs one Envoy with a listener for each row, and returns their URLs.
func startRows(t *testing.T, rows []row, servers map[string]string) map[string]string {
	t.Helper()
	var text strings.Builder
	err := rowsOfEnvoy.Execute(&text, map[string]any{"Rows": rows, "Servers": servers})
	if err != nil {
		t.Fatal(err)
	}
	dir := directory(t)
	write(t, dir, map[string]string{
		"envoy.yaml": strings.ReplaceAll(writtenOut(text.String()), "PLAIN", servers["plain"]),
	})
	start(t, dir, envoy(), "-c", "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1",
		"--log-level", "error", "--admin-address-path", "admin", "--service-cluster", "front")
	admin := &site{client: http.DefaultClient}
	until(t, "Envoy is ready", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "admin")) // which is not there at first
		admin.url = "http://" + string(b)
		return len(b) > 0 && admin.send(t, http.MethodGet, "/ready", nil).body == "LIVE\n"
	})
	urls := make(map[string]string)
	for line := range strings.Lines(admin.send(t, http.MethodGet, "/listeners", nil).body) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), "::")
		urls[name] = "http://" + address
	}
	return urls
}

// ask sends a request, and returns the answer in the words of the table.
func ask(t *testing.T, client *http.Client, url, request string) string {
	t.Helper()
	path, fields, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	fields = strings.NewReplacer("9kB", strings.Repeat("x", 9000), `\xff`, "\xff").Replace(fields)
	for f := range strings.SplitSeq(fields, "; ") {
		if name, value, ok := strings.Cut(f, ":"); ok {
			r.Header.Set(name, strings.TrimSpace(value))
		}
	}
	before := time.Now()
	res, err := client.Do(r)
	if err != nil {
		return "closed"
	}
	defer res.Body.Close()
	return inWords(res, before.Unix(), time.Now().Unix())
}

var (
	policyWindow = regexp.MustCompile(`;w=(\d+)`)
	unitNames    = map[int64]string{
		1: "second", 60: "minute", 3600: "hour", 86400: "day", 604800: "week", 2592000: "month",
		31536000: "year",
	}
)

// inWords returns the status of an answer and what its header fields say, such as 200 1 of 2/day.
// Times are in it only if they are not those until the end of a window.
func inWords(res *http.Response, before, after int64) string {
	h := res.Header
	var words strings.Builder
	words.WriteString(strconv.Itoa(res.StatusCode))
	limit, policies, found := strings.Cut(h.Get("X-Ratelimit-Limit"), ", ")
	var ends []string
	for _, m := range policyWindow.FindAllStringSubmatch(policies, -1) {
		length, _ := strconv.ParseInt(m[1], 10, 64) // digits
		for now := before; now <= after; now++ {
			ends = append(ends, strconv.FormatInt(length-now%length, 10))
		}
		policies = strings.Replace(policies, m[0], "/"+unitNames[length], 1)
	}
	if found {
		words.WriteString(" " + h.Get("X-Ratelimit-Remaining") + " of ")
		if !strings.HasPrefix(policies, limit+"/") {
			words.WriteString(limit + " in ")
		}
		words.WriteString(policies)
		if reset := h.Get("X-Ratelimit-Reset"); !slices.Contains(ends, reset) {
			words.WriteString(", reset " + reset)
		}
	}
	if h.Get("X-Envoy-Ratelimited") != "" {
		words.WriteString(", limited")
	}
	for _, name := range []string{"Retry-After", "Grpc-Status", "X-Note"} {
		switch value := h.Get(name); {
		case value == "":
		case slices.Contains(ends, value):
			words.WriteString(", " + strings.ToLower(name))
		default:
			words.WriteString(", " + strings.ToLower(name) + " " + value)
		}
	}
	return words.String()
}
