package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// shapes are lines as servers and shippers write them. In a line, CLF, COMMON and ESC stand for the
// same request in the combined format, in the common one, and in the first inside a text of JSON.
// want is what an error must say, or nothing if each request is read.
var shapes = []struct{ name, line, want string }{
	{"combined", `CLF`, ""},
	{"common", `COMMON`, ""},
	{"virtual host", `x.org:443 CLF`, ""},
	{"virtual host that is an address", `10.0.0.1:443 CLF`, ""},
	{"more columns", `CLF 0.012 "10.0.0.1:80" rt=0.1`, ""},
	{"a column of JSON", `CLF {"rt":0.1}`, ""},
	{"microseconds after it", `COMMON 1234`, ""},
	{"user", `ADDR - frank [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"user with spaces, brackets, an address", `ADDR - a [b] 9.9.9.9 - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"identity", `ADDR ident frank [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"user that is an address", `ADDR - 10.0.0.9 [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"port", `ADDRPORT - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"port without brackets", `ADDR:54321 - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"another zone", `ADDR - - [ZONE] "GET PATH HTTP/1.1" 200 5 "-" "x"`, ""},
	{"CRLF", "CLF\r", ""},
	{"blank lines", "CLF\n\n", ""},
	{"byte order mark", "\uFEFFCLF", "do not trust"}, // before each line: no program writes it
	{"ISO time in brackets", `ADDR - - [ISO] "GET PATH HTTP/1.1" 200 5`, ""},
	{"msec in brackets", `ADDR - - [SEC.000] "GET PATH HTTP/1.1" 200 5`, ""},
	{"ingress-nginx", `CLF 412 0.004 [default-web-80] [] 10.1.0.7:8080 5 0.004 200 2f6ac1`, ""},
	{"ingress-nginx of old", `ADDR - [ADDR] - - [LOCAL] "GET PATH HTTP/1.1" 200 5 "-" "x" 412 0.004`, ""},
	{"lighttpd", `ADDR x.org - [LOCAL] "GET PATH HTTP/1.1" 200 5 "-" "x"`, ""},
	{"Varnish", `ADDR - - [LOCAL] "GET http://x.orgPATH HTTP/1.1" 200 5 "-" "x"`, ""},
	{"gunicorn", `ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5 "-" "x"`, ""},
	{"puma", `ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5 0.0123`, ""},
	{"HAProxy CLF", `ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5 "" "" 4711 123 "web" "web" "s1" 0 0 0 1 1 ---- 1 1 1 1 0 0 0`, ""},
	{"Traefik CLF", `CLF 12 "web@docker" "http://10.0.0.1:80" 1ms`, ""},
	{"AWS API Gateway", `ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5 4a1e-77`, ""},
	{"GCP load balancer as CLF", `CLF "-" "x" 1`, ""},
	{"quoted first column", `"ADDR" - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"quoted list", `"203.0.113.9, ADDR" - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"list", `203.0.113.9, ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, ""},
	{"X-Forwarded-For before the client", `203.0.113.9 ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5`, "no single client"},
	{"dash before the client", `- CLF`, ""},

	{"syslog RFC 3164", `Dec 17 CLOCK web1 nginx[812]: CLF`, ""},
	{"syslog with priority", `<190>Dec 17 CLOCK web1 nginx: CLF`, ""},
	{"syslog without a host", `<190>Dec 17 CLOCK nginx: CLF`, ""},
	{"syslog whose host is an address", `Dec 17 CLOCK 10.0.0.5 nginx: CLF`, ""},
	{"syslog RFC 5424", `<190>1 2030-01-01T00:00:00Z web1 nginx 812 - - CLF`, ""},
	{"syslog RFC 5424 with data", `<190>1 2030-01-01T00:00:00Z 10.0.0.5 nginx 812 - [a@1 b="c"] CLF`, ""},
	{"rsyslog", `2030-01-01T00:00:00.123456+00:00 web1 nginx[812]: CLF`, ""},
	{"Fastly by syslog", `<134>2030-01-01T00:00:00Z cache-fra1 log[62]: CLF`, ""},
	{"CRI", `2030-01-01T00:00:00.100000001Z stdout F CLF`, ""},
	{"docker compose logs", `web-1  | CLF`, ""},
	{"docker compose logs -t", `web-1  | 2030-01-01T00:00:00.1Z CLF`, ""},
	{"stern", `web-7f nginx CLF`, ""},
	{"kubectl logs --prefix", `[pod/web-7f/nginx] CLF`, ""},
	{"kubectl logs --timestamps", `2030-01-01T00:00:00.1Z CLF`, ""},

	{"HAProxy HTTP", `ADDRPORT [LOCALMS] http-in web/s1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET PATH HTTP/1.1"`, ""},
	{"HAProxy HTTP by syslog, with captures", `Feb  6 12:14:14 lb1 haproxy[14389]: ADDR:33317 [LOCALMS] http-in~ web/s1 10/0/30/69/+109 200 +2750 a=b - --VN 1/1/1/1/0 0/0 {x.org|a b} {} "GET PATH HTTP/1.1"`, ""},
	{"HAProxy TCP", `ADDRPORT [LOCALMS] in web/s1 0/0/5007 212 -- 0/0/0/0/3 0/0`, "-path"},
	{"AWS S3", `79a59df9 my-bucket [LOCAL] ADDR 79a59df9 3E57 REST.GET.OBJECT key "GET PATH HTTP/1.1" 200 - 113 - 7 - "-" "UA" -`, ""},
	{"AWS ALB", `https ISO app/lb/50dc ADDRPORT 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://x.org:443PATH HTTP/1.1" "curl/7" ECDHE TLSv1.2 arn:aws:x "Root=1" "x.org" "-" 1 ISO "forward" "-" "-"`, ""},
	{"AWS ELB", `ISO my-lb ADDRPORT 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://x.org:80PATH HTTP/1.1" "curl/7" - -`, ""},
	{"IIS", "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status\nDATE CLOCK 10.0.0.1 GET PATH - 443 - ADDR UA+x 200", ""},
	{"IIS Advanced Logging", "#Fields: date time c-ip cs-uri-stem cs(User-Agent) sc-status\nDATE CLOCK ADDR PATH \"a b\" 200", ""},
	{"CloudFront", "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status\nDATE\tCLOCK\tFRA2\t5\tADDR\tGET\td1.cloudfront.net\tPATH\t200", ""},
	{"NetScaler", "#Fields: date time c-ip cs-username s-ip s-port cs-method cs-uri-stem sc-status\nDATE CLOCK ADDR - 10.0.0.1 80 GET PATH 200", ""},
	{"W3C without its head", `DATE CLOCK 10.0.0.1 GET PATH - 443 - ADDR UA+x 200`, "describe the lines by --format"},
	{"a client before a colon", `[LOCAL] ADDR: "GET PATH HTTP/1.1" (200) 12`, "describe the lines by --format"},
	{"uvicorn with a time", `DATE CLOCK,123 INFO:     ADDRPORT - "GET PATH HTTP/1.1" 200 OK`, "describe the lines by --format"},
	{"logfmt with a port", `level=info ts=SEC.000 msg="a b" path=PATH?a=1 remote_addr=ADDRPORT size=1`, "describe the lines by --format"},
	{"single quotes", `[DATE CLOCK] [x.access:12] GET PATH?a=1 'Mozilla (X; 9)' 200 ADDR`, "describe the lines by --format"},
	{"seconds after a path", `ADDR - GET PATH?a=b HTTP/1.1 - 200 "MSec" SEC.000`, "describe the lines by --format"},
	{"an offset, and an id like a time", `id=1700000000 DATE CLOCK.1 +00:00 [INF] GET PATH?a=b ADDR x`, "describe the lines by --format"},
	{"Envoy", `[ISO] "GET PATH HTTP/1.1" 200 - 0 5 12 11 "203.0.113.9,ADDR" "curl/8" "2f6a" "x.org" "10.0.0.1:80"`, ""},
	{"Envoy without X-Forwarded-For", `[ISO] "GET PATH HTTP/1.1" 200 - 0 5 12 11 "-" "curl/8" "2f6a" "x.org" "10.0.0.1:80"`, "no client address"},
	{"Istio", `[ISO] "GET PATH HTTP/1.1" 200 - via_upstream - "-" 0 5 12 11 "-" "curl/8" "2f6a" "x.org" "10.0.0.1:80" outbound|80||x 10.0.0.2:1 10.0.0.3:80 ADDRPORT - default`, ""},
	{"Istio in CRI", `2030-01-01T00:00:00.1Z stdout F [ISO] "GET PATH HTTP/1.1" 200 - via_upstream - "-" 0 5 12 11 "-" "curl/8" "2f6a" "x.org" "10.0.0.1:80" outbound|80||x 10.0.0.2:1 10.0.0.3:80 ADDRPORT - default`, ""},
	{"Nginx Proxy Manager", `[LOCAL] - 200 200 - GET https x.org "PATH" [Client ADDR] [Length 5] [Gzip -] [Sent-to 10.0.0.1] "UA" "-"`, ""},
	{"Squid", `SEC.123     45 ADDR TCP_MISS/200 1234 GET http://x.orgPATH - HIER_DIRECT/10.0.0.1 text/html`, ""},
	{"LTSV", "time:[LOCAL]\thost:ADDR\treq:GET PATH HTTP/1.1\tstatus:200\tsize:5\tua:x", "describe the lines by --format"},
	{"logfmt", `time=ISO level=info msg="a b" method=GET path=PATH status=200 remote_addr=ADDR`, "describe the lines by --format"},
	{"Heroku's router", `ISO heroku[router]: at=info method=GET path="PATH" host=x.org request_id=8 fwd="ADDR" dyno=web.1 status=200`, "describe the lines by --format"},
	{"gin", `[GIN] SLASHED - CLOCK | 200 |     1.234ms |    ADDR | GET      "PATH"`, "describe the lines by --format"},
	{"uwsgi", `[pid: 7|app: 0|req: 1/1] ADDR () {40 vars in 600 bytes} [CTIME] GET PATH => generated 5 bytes in 1 msecs`, "-path"},
	{"morgan dev", `GET PATH 200 1.234 ms - 5`, "describe the lines by --format"},
	{"CSV", `ISO,ADDR,GET,PATH,200`, "describe the lines by --format"},
	{"columns with pipes", `200 | [LOCAL] | ADDR | GET PATH`, "describe the lines by --format"},
	{"durations before the time", `0.001 0.002 [LOCAL] ADDR "GET PATH HTTP/1.1"`, "no single client address before the time"},
	{"Zoraxy", `[SLASHED CLOCK.123] [router:host-http] [client: ADDR] [useragent: x] GET PATH 200`, "describe the lines by --format"},
	{"columns with dashes", `[ISO] - x.org - ADDR - 200 - - - GET - PATH`, "describe the lines by --format"},
	{"Apache's ssl_request_log", `[LOCAL] ADDR TLSv1.2 ECDHE-RSA-AES128 "GET PATH HTTP/1.1" 1375`, "describe the lines by --format"},
	{"names before columns", `time_local="LOCAL" http_method="GET" src="ADDR" status="200"`, "describe the lines by --format"},
	{"a client in parentheses", `- [LOCAL] "GET PATH HTTP/1.1" 302 226 "-" "x" % x.org:443 (ADDR) ADDR 10.0.4.41 "-"`, "describe the lines by --format"},
	{"time without brackets", `ADDR ISO GET PATH 200`, "describe the lines by --format"},
	{"UTF-16", "\xff\xfeI\x00P\x00", "iconv"},
	{"an error log", `2025/12/17 CLOCK [error] 12#0: *1 open() failed, client: ADDR, server: x, request: "GET PATH HTTP/1.1"`, "describe the lines by --format"},

	{"nginx as JSON", `{"time_iso8601":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1","status":"200"}`, ""},
	{"Caddy", `{"level":"info","ts":SEC.5,"msg":"handled request","request":{"remote_ip":"ADDR","method":"GET","uri":"PATH"},"status":200}`, ""},
	{"Caddy on a console", "SLASHED CLOCK.123\tINFO\thttp.log.access\thandled request\t{\"request\": {\"remote_ip\": \"ADDR\", \"method\": \"GET\", \"uri\": \"PATH\"}}", ""},
	{"Traefik", `{"ClientAddr":"ADDRPORT","ClientHost":"ADDR","RequestMethod":"GET","RequestPath":"PATH","StartUTC":"ISO"}`, ""},
	{"Envoy as JSON", `{"start_time":"ISO","method":"GET","path":"PATH","downstream_remote_address":"ADDRPORT"}`, ""},
	{"Envoy as JSON, X-Forwarded-For", `{"start_time":"ISO","method":"GET","path":"PATH","x_forwarded_for":"203.0.113.9, ADDR"}`, ""},
	{"AWS API Gateway as JSON", `{"requestTime":"LOCAL","ip":"ADDR","httpMethod":"GET","path":"PATH","status":"200"}`, ""},
	{"AWS WAF", `{"timestamp":SEC000,"action":"ALLOW","httpRequest":{"clientIp":"ADDR","uri":"PATH","httpMethod":"GET"}}`, ""},
	{"Google Cloud", `{"timestamp":"ISO","httpRequest":{"remoteIp":"ADDR","requestMethod":"GET","requestUrl":"https://x.orgPATH"}}`, ""},
	{"Cloudflare", `{"EdgeStartTimestamp":SEC000000000,"ClientIP":"ADDR","ClientRequestMethod":"GET","ClientRequestURI":"PATH"}`, ""},
	{"Fastly as JSON", `{"timestamp":"ISO","client_ip":"ADDR","request_method":"GET","url":"PATH"}`, ""},
	{"Elastic Common Schema", `{"@timestamp":"ISO","source":{"ip":"ADDR"},"http":{"request":{"method":"GET"}},"url":{"path":"PATH"}}`, ""},
	{"OpenTelemetry, flat", `{"timestamp":"ISO","client.address":"ADDR","http.request.method":"GET","url.path":"PATH"}`, ""},
	{"OpenTelemetry, attributes", `{"timeUnixNano":"SEC000000000","attributes":{"client.address":"ADDR","http.request.method":"GET","url.path":"PATH"}}`, ""},
	{"APISIX", `{"start_time":SEC000,"client_ip":"ADDR","request":{"method":"GET","uri":"PATH"},"response":{"status":200}}`, ""},
	{"Kong", `{"request":{"method":"GET","uri":"PATH"},"response":{"status":200},"client_ip":"ADDR","started_at":SEC000}`, ""},
	{"GitLab", `{"method":"GET","path":"PATH","status":200,"time":"ISO","remote_ip":"ADDR"}`, ""},
	{"slog", `{"time":"ISO","level":"INFO","msg":"request","method":"GET","path":"PATH","remote_addr":"ADDRPORT"}`, ""},
	{"bunyan", `{"name":"x","time":"ISO","req":{"method":"GET","url":"PATH","remoteAddress":"ADDR"},"v":0}`, ""},
	{"Azure", `{"time":"ISO","resourceId":"/x","properties":{"clientIP":"ADDR","httpMethod":"GET","requestUri":"PATH","httpStatus":200}}`, ""},
	{"Akamai", `{"reqTimeSec":"SEC.5","cliIP":"ADDR","reqMethod":"GET","reqPath":"PATH","statusCode":"200"}`, ""},
	{"Vercel", `{"timestamp":SEC000,"source":"lambda","proxy":{"clientIp":"ADDR","method":"GET","path":"PATH"}}`, ""},
	{"source that is no client", `{"source":"nginx","x_real_ip":"ADDR","request":"GET PATH HTTP/1.1","time":"ISO"}`, ""},
	{"time of mail", `{"date":"RFC1123","client":"ADDR","method":"GET","path":"PATH"}`, ""},
	{"time of C", `{"time":"CTIME","client":"ADDR","method":"GET","path":"PATH"}`, ""},
	{"time of Go", `{"time":"DATE CLOCK.000 +0000 UTC","client":"ADDR","method":"GET","path":"PATH"}`, ""},
	{"JSON in syslog", `Dec 17 CLOCK web1 nginx: {"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"}`, ""},
	{"JSON in CRI", `2030-01-01T00:00:00.1Z stdout F {"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"}`, ""},
	{"JSON in Compose", `web-1  | {"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"}`, ""},
	{"JSON in stern", `web-7f nginx {"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"}`, ""},
	{"Docker's json-file", `{"log":"ESC\n","stream":"stdout","time":"2030-01-01T00:00:00.1Z"}`, ""},
	{"Docker's json-file of JSON", `{"log":"{\"time\":\"ISO\",\"remote_addr\":\"ADDR\",\"request\":\"GET PATH HTTP/1.1\"}\n","stream":"stdout","time":"2030-01-01T00:00:00.1Z"}`, ""},
	{"journald", `{"__REALTIME_TIMESTAMP":"1893456000000000","_HOSTNAME":"web1","MESSAGE":"ESC"}`, ""},
	{"Filebeat", `{"@timestamp":"2030-01-01T00:00:00.1Z","host":{"ip":["10.0.0.1"]},"log":{"source":{"address":"10.0.0.5:514"}},"message":"ESC"}`, ""},
	{"Loki", `{"labels":{"app":"web"},"line":"ESC","timestamp":"2030-01-01T00:00:00Z"}`, ""},
	{"Graylog", `{"version":"1.1","source":"10.0.0.5","short_message":"ESC","timestamp":1893456000.1}`, ""},
	{"a message that looks like a line", `{"time":"ISO","remote_addr":"ADDR","method":"GET","path":"PATH","msg":"9.9.9.9 - - [LOCAL] \"GET /x HTTP/1.1\" 200 5"}`, ""},
	{"a message with an escape that is none", `{"time":"ISO","remote_addr":"ADDR","method":"GET","path":"PATH","msg":"C:\q abcdefghijklmnopqrstuvwxyz"}`, ""},
	{"a duration that looks like a time", `{"date":"DATE","time":"CLOCK","request_time":"00:00:01","ip":"ADDR","path":"PATH"}`, ""},
	{"an array, by lines", `{"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"},`, ""},
	{"an array, in one line", `[{"time":"ISO","remote_addr":"ADDR","request":"GET PATH HTTP/1.1"}]`, "jq -c .[] FILE"},
	{"JSON over several lines", "{\n\"time\":\"ISO\",\n\"remote_addr\":\"ADDR\"\n}", "jq -c . FILE"},
	{"JSON with names of one's own", `{"when":"ISO","who":"ADDR","what":"PATH"}`, "it has the members when, who, what; name those"},
}

// request is one of a truth that is written in all shapes.
type request struct {
	at           time.Time
	client, path string
	key          string
}

func truth() (all []request) {
	for i := range 600 {
		r := request{at: time.Unix(1765962000+int64(i)/3, 0).UTC(), path: fmt.Sprintf("/p%d", i%7)}
		n := i * i * i % 23 % 12
		if r.client = fmt.Sprintf("198.18.0.%d", n+1); n > 8 {
			r.client = fmt.Sprintf("2001:db8:1:%d::%d", n/11, i+100) // two networks
		}
		if r.key = r.client; n > 8 {
			r.key = fmt.Sprintf("2001:db8:1:%d::/64", n/11)
		}
		all = append(all, r)
	}
	return all
}

func (r request) in(shape string) string {
	port := r.client + ":54321"
	if strings.Contains(r.client, ":") {
		port = "[" + r.client + "]:54321"
	}
	common := `ADDR - - [LOCAL] "GET PATH HTTP/1.1" 200 5`
	combined := common + ` "https://x.org/[a]" "Mozilla/5.0 (X; 1.2.3.4)"`
	layout := func(l string) string { return r.at.Format(l) }
	s := strings.NewReplacer("CLF", combined, "COMMON", common, "ESC", strings.ReplaceAll(combined, `"`, `\"`)).Replace(shape)
	return strings.NewReplacer("ADDRPORT", port, "ADDR", r.client, "PATH", r.path,
		"LOCALMS", layout("02/Jan/2006:15:04:05.000"), "LOCAL", layout("02/Jan/2006:15:04:05 -0700"), "ISO", layout("2006-01-02T15:04:05.000Z"),
		"ZONE", r.at.In(time.FixedZone("", 5*3600+1800)).Format("02/Jan/2006:15:04:05 -0700"), "SEC", fmt.Sprint(r.at.Unix()), "DATE", layout("2006-01-02"),
		"SLASHED", layout("2006/01/02"), "CLOCK", layout("15:04:05"), "CTIME", layout(time.ANSIC), "RFC1123", layout("Mon, 02 Jan 2006 15:04:05 GMT")).Replace(s) + "\n"
}

// granted counts by hand what 2 of a window of 10 s grant to each of the keys.
func granted(all []request, key func(request) string) (keys map[string]bool, denied int64) {
	grants, keys := map[string]int{}, map[string]bool{}
	for _, r := range all {
		keys[key(r)] = true
		window := fmt.Sprint(key(r), r.at.Unix()/10)
		if grants[window]++; grants[window] > 2 {
			denied++
		}
	}
	return keys, denied
}

var keyed = map[string]func(request) string{
	"ip": func(r request) string { return r.key }, "path": func(r request) string { return r.path },
}

// mustRead checks that the truth is read from a shape, to the last request, or that an error has want.
func mustRead(t *testing.T, c replay.Config, shape, want string) {
	t.Helper()
	all, log := truth(), strings.Builder{}
	for _, r := range all {
		log.WriteString(r.in(shape))
	}
	report, err := replay.Run(t.Context(), c, replay.Log{Name: "a", Reader: strings.NewReader(log.String())})
	if err == nil {
		err = report.Unreadable()
	}
	keys, denied := granted(all, keyed[c.By.String()])
	switch {
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%v; want an error with %q", err, want)
	case want == "" && (err != nil || report.Requests != int64(len(all)) || report.Keys != int64(len(keys)) || report.Limits[0].Denied != denied):
		t.Errorf("by %s: %+v %v; want %d keys, %d denied\n%s", c.By, report, err, len(keys), denied, all[0].in(shape))
	}
}

var advised = regexp.MustCompile(`--format '(.*)', see`)

// Each shape is read to the last request, or refused with an advice. None is read wrong. A format
// that the advice makes of a line reads the log.
func TestShapes(t *testing.T) {
	suggested := 0
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			want := strings.TrimPrefix(shape.want, "-path")
			mustRead(t, config(t, "ip", "2/10s fixed-window"), shape.line, want)
			if shape.want == "" {
				mustRead(t, config(t, "path", "2/10s fixed-window"), shape.line, "")
			}
			c := config(t, "ip", "2/10s fixed-window")
			_, err := replay.Run(t.Context(), c, replay.Log{Name: "a", Reader: strings.NewReader(truth()[0].in(shape.line))})
			if a := advised.FindStringSubmatch(fmt.Sprint(err)); a != nil && !strings.HasSuffix(a[1], "...") && shape.want != "no single client" {
				c.Format, _ = replay.ParseFormat(strings.ReplaceAll(a[1], `'\''`, "'"))
				mustRead(t, c, shape.line, "")
				suggested++
			}
		})
	}
	if suggested < 10 {
		t.Errorf("%d formats were suggested, want more", suggested)
	}
}

// A format is suggested only for a client. A shell that reads it runs no part of the line.
func TestSuggestion(t *testing.T) {
	for line, want := range map[string]string{
		`n ' ;reboot;: ' [17/Dec/2025:09:03:01 +0000] 203.0.113.8 ok`:           `--format '$_ '\''$_'\'' [$time] $remote_addr $_', see`,
		`n '$(reboot): [17/Dec/2025:09:03:01 +0000] 203.0.113.8 ok`:             `--format '$_ '\''$_($_)$_ [$time] $remote_addr $_', see`,
		`[17/Dec/2025:09:03:01 +0000] GET / upstream=10.0.0.1:80`:               `--format '$remote_addr [$time_local] ...', see`,
		`[17/Dec/2025:09:03:01 +0000] GET / app/1.2.3.4`:                        `--format '$remote_addr [$time_local] ...', see`,
		`[17/Dec/2025:09:03:01 +0000] ` + strings.Repeat("a ", 300) + "9.9.9.9": `--format '$remote_addr [$time_local] ...', see`,
	} {
		_, err := replay.Run(t.Context(), config(t, "ip", "1/h"), replay.Log{Name: "a", Reader: strings.NewReader(line)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// What a shipper writes before its lines changes nothing of a log.
func TestShopDayShipped(t *testing.T) {
	log, err := os.ReadFile(shopDay)
	if err != nil {
		t.Fatal(err)
	}
	for i, prefix := range []string{"", "2030-01-01T00:00:00.1Z stdout F ", "Dec 22 09:00:00 web1 nginx: ", "<190>1 2030-01-01T00:00:00Z w n 1 - - ", "2030-01-01T00:00:00.1+00:00 w n: ",
		"web-1  | ", "web-7f nginx ", "[pod/web-7f/nginx] ", "2030-01-01T00:00:00.1Z ", "<134>2030-01-01T00:00:00Z w n[1]: ", "web-1  | Dec 22 09:00:00 10.0.0.5 nginx: "} {
		var shipped strings.Builder
		for line := range strings.Lines(string(log)) {
			shipped.WriteString(prefix + line)
		}
		sized, err := replay.Size(t.Context(), replay.SizeConfig{Reading: usual}, replay.Log{Name: "a", Reader: strings.NewReader(shipped.String())})
		if err != nil {
			t.Fatal(err)
		}
		needed, _ := sized.Needed()
		if sized.Requests != 997 || sized.Keys != 93 || needed.String() != "47/h" {
			t.Errorf("%d %q: %d requests of %d keys need %s; want 997, 93, 47/h", i, prefix, sized.Requests, sized.Keys, needed)
		}
	}
}

// What users describe themselves, plain and in what Docker writes.
func TestOwnShapes(t *testing.T) {
	for _, c := range []struct{ format, fields, line string }{
		{`$status | [$time_local] | $remote_addr | "$request"`, "", `200 | [LOCAL] | ADDR | "GET PATH HTTP/1.1"`},
		{`$remote_addr | $msec | "$request"`, "", `ADDR | SEC.000 | "GET PATH HTTP/1.1"`},
		{`$request_time $upstream_response_time [$time_local] ${remote_addr} "$request"`, "", `0.001 0.1, 0.2 [LOCAL] ADDR "GET PATH HTTP/1.1"`},
		{`$time_iso8601,$remote_addr,$request_method,$request_uri`, "", `ISO,ADDR,GET,PATH`},
		{`$date $time $c_ip $uri`, "", "DATE\tCLOCK\tADDR\tPATH"},
		{`"$http_x_forwarded_for" [$time_local] "$request"`, "", `"203.0.113.9, ADDR" [LOCAL] "GET PATH HTTP/1.1"`},
		{"time:[$time_local]\thost:$client\treq:$request\tstatus:$status", "", "time:[LOCAL]\thost:ADDR\treq:GET PATH HTTP/1.1\tstatus:200\tsize:5"},
		{`time=$time level=$_ msg="$_" method=$method path=$path status=$_ remote_addr=$client`, "", `time=ISO level=info msg="a b" method=GET path=PATH status=200 remote_addr=ADDR`},
		{`$remote_addr | $msec | "$request"`, "", `{"log":"ADDR | SEC.000 | \"GET PATH HTTP/1.1\"\n","time":"2030-01-01T00:00:00Z"}`},
		{`$remote_addr | "$request"`, "", `ISO stdout F ADDR | "GET PATH HTTP/1.1"`},
		{"json", "client=user.ip,time=when,path=what", `{"ip":"10.0.0.1","user":{"ip":"ADDR"},"when":"ISO","path":"/no","what":"PATH"}`},
		{"auto", "client=request.real,time=t", `{"ip":"10.0.0.1","time":1,"request":{"real":"ADDR","uri":"PATH"},"t":SEC}`},
		{`$remote_addr\t$msec\t$_\t$request`, "", "ADDR\tSEC.000\ta b\tGET PATH HTTP/1.1"},
		{"auto", "client=a.b", `{"a.b":"ADDR","time":"ISO","uri":"PATH"}`},
	} {
		for by := range keyed {
			config := config(t, by, "2/10s fixed-window")
			var err, errNames error
			config.Format, err = replay.ParseFormat(c.format)
			config.Names, errNames = replay.ParseNames(c.fields)
			if err != nil || errNames != nil {
				t.Fatal(err, errNames)
			}
			mustRead(t, config, c.line, "")
		}
	}
	for _, format := range []string{"csv", "$remote_addr$time_local", "$", "${a"} {
		if _, err := replay.ParseFormat(format); err == nil {
			t.Errorf("%q is a format", format)
		}
	}
}

// Any bytes are lines that are requests, or skipped and counted.
func FuzzLog(f *testing.F) {
	for _, shape := range shapes {
		f.Add([]byte(truth()[0].in(shape.line)), `$remote_addr [$time_local] "$request" $status`, "client=a.b,time=when")
	}
	f.Add([]byte(`0 [] "AA 00000" `), "auto", "") // a time in brackets that is empty
	f.Fuzz(func(t *testing.T, log []byte, format, names string) {
		for _, forced := range []string{"auto", format} {
			var err, errNames error
			c := replay.Reading{By: replay.ByIP, Reorder: time.Minute}
			c.Format, err = replay.ParseFormat(forced)
			c.Names, errNames = replay.ParseNames(names)
			if err != nil || errNames != nil {
				continue
			}
			sized, err := replay.Size(t.Context(), replay.SizeConfig{Reading: c}, replay.Log{Name: "a", Reader: bytes.NewReader(log)})
			if err == nil && sized.Lines != sized.Requests+sized.Skipped {
				t.Errorf("%q: %d lines, %d requests, %d skipped", log, sized.Lines, sized.Requests, sized.Skipped)
			}
		}
	})
}
