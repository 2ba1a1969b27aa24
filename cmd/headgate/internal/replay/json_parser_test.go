package replay

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSON(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"nginx", `{"time_iso8601":"2025-12-17T09:03:01+00:00","remote_addr":"198.18.0.1","request":"GET /a?b HTTP/1.1","request_time":"0.123","status":"200","http_host":"x.org","http_referer":"","http_user_agent":"curl/8"}`, "0|198.18.0.1|GET|/a?b|x.org||curl/8"},
		{"nginx with msec", `{"msec":"1765962181.000","remote_addr":"198.18.0.1","request_method":"GET","request_uri":"/a?b","uri":"/a"}`, "0|198.18.0.1|GET|/a?b|||"},
		{"Caddy", `{"level":"info","ts":1765962181.000002,"logger":"http.log.access","request":{"remote_ip":"198.18.0.9","remote_port":"1","client_ip":"198.18.0.1","proto":"HTTP/2.0","method":"GET","host":"x.org","uri":"/a","headers":{"Accept":["*/*"],"User-Agent":["curl/8","no"],"Referer":["r"]},"tls":{"x":1}},"resp_headers":{"User-Agent":["no"]},"status":200}`, "2|198.18.0.1|GET|/a|x.org|r|curl/8"},
		{"Traefik", `{"ClientAddr":"198.18.0.1:4711","ClientHost":"198.18.0.1","RequestMethod":"GET","RequestPath":"/a","RequestHost":"x.org","StartUTC":"2025-12-17T09:03:01.5Z","request_User-Agent":"curl/8","time":"2025-12-17T09:03:02Z"}`, "500000|198.18.0.1|GET|/a|x.org||curl/8"},
		{"Envoy", `{"start_time":"2025-12-17T09:03:01.000Z","method":"GET","path":"/a","authority":"x.org","downstream_remote_address":"198.18.0.1:1","user_agent":"curl/8"}`, "0|198.18.0.1:1|GET|/a|x.org||curl/8"},
		{"Elastic Common Schema", `{"@timestamp":"2025-12-17T09:03:01Z","client":{"ip":"198.18.0.1","geo":{"ip":"no"}},"http":{"request":{"method":"GET"}},"url":{"path":"/a","domain":"x.org"},"user_agent":{"original":"curl/8"}}`, "0|198.18.0.1|GET|/a|x.org||curl/8"},
		{"the same, flat", `{"@timestamp":"2025-12-17T09:03:01Z","client.ip":"198.18.0.1","http.request.method":"GET","url.path":"/a","url.domain":"x.org","user_agent.original":"x"}`, "0|198.18.0.1|GET|/a|x.org||"},
		{"Google Cloud", `{"timestamp":"2025-12-17T09:03:01Z","httpRequest":{"remoteIp":"198.18.0.1","requestMethod":"GET","requestUrl":"https://x.org/a","userAgent":"curl/8"}}`, "0|198.18.0.1|GET|https://x.org/a|||curl/8"},
		{"Cloudflare", `{"EdgeStartTimestamp":1765962181000000000,"ClientIP":"198.18.0.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","ClientRequestHost":"x.org","ClientRequestUserAgent":"curl/8"}`, "0|198.18.0.1|GET|/a|x.org||curl/8"},
		{"pino", `{"level":30,"time":1765962181000,"req":{"method":"GET","url":"/a","headers":{"user-agent":"curl/8"},"remoteAddress":"198.18.0.1"},"msg":"done"}`, "0|198.18.0.1|GET|/a|||curl/8"},
		{"fluentd", `{"host":"198.18.0.1","user":null,"method":"GET","path":"/a","code":200,"time":"17/Dec/2025:09:03:01 +0000","agent":"x"}`, "0|198.18.0.1|GET|/a|198.18.0.1||"},
		{"time in brackets", `{"time":"[17/Dec/2025:09:03:01 +0000]","ip":"198.18.0.1"}`, "0|198.18.0.1|||||"},
		{"duration before time", `{"request_time":0.5,"ts":1765962181,"ip":"198.18.0.1"}`, "0|198.18.0.1|||||"},
		{"escapes", `{"ts":1765962181,"ip":"198.18.0.1","path":"\/\u00e4\ud83d\ude00\"\\\n","met\u0068od":"no"}`, "0|198.18.0.1||/ä😀\"\\\n|||"},
		{"nginx without escape=json", `{"ts":1765962181,"ip":"198.18.0.1","path":"/\x16a"}`, `0|198.18.0.1||/\x16a|||`},
		{"white space", " { \"ts\" : 1765962181 , \"ip\" :\t\"198.18.0.1\" } ", "0|198.18.0.1|||||"},
		{"strings with brackets", `{"a":["]",{"b":"}\"]"}],"ts":1765962181,"ip":"198.18.0.1"}`, "0|198.18.0.1|||||"},
		{"null and dash", `{"client_ip":null,"remote_addr":"-","ip":"198.18.0.1","ts":1765962181}`, "0|198.18.0.1|||||"},

		{"no time", `{"ip":"198.18.0.1"}`, "no time that can be read"},
		{"time of another kind", `{"time":"yesterday","ip":"198.18.0.1"}`, "no time that can be read"},
		{"cut off", `{"ts":1765962181,"ip":"198.18`, "not a whole JSON object"},
		{"two objects", `{"ts":1765962181} {"ts":1}`, "not a whole JSON object"},
		{"an array", `[1]`, "not in a known format"},
		{"text", `hello`, "not in a known format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newParser(Format{name: "json"}, everything)
			for range 2 { // the second time from memory
				e := newEntry()
				got := p.parse([]byte(c.line), e)
				if got == "" {
					got = told(e)
				}
				if got != c.want {
					t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
				}
			}
		})
	}
}

// Lines with other members, or in another order, are read as if they were alone.
func TestJSONForgets(t *testing.T) {
	lines := []string{
		`{"ts":1765962181,"ip":"198.18.0.1","path":"/a"}`,
		`{"ip":"198.18.0.1","ts":1765962181,"path":"/a"}`,
		`{"x":{"ip":"no"},"client":{"ip":"198.18.0.1"},"url":{"path":"/a"},"ts":1765962181}`,
		`{"ts":1765962181,"x":{"y":1},"host":"x.org","ip":"198.18.0.1"}`,
		`{"ts":1765962181,"client":{"a":1,"host":"198.18.0.1"}}`,
		`{"ts":1765962181,"headers":{"a":1,"host":"x.org","referer":"r"},"referer":"no","ip":"198.18.0.1"}`,
		`{"ts":1765962181,"ip":"198.18.0.1","path":"/a"}`,
	}
	p := newParser(Format{name: "json"}, everything)
	for _, line := range lines {
		e, alone := newEntry(), newEntry()
		why := p.parse([]byte(line), e)
		whyAlone := newParser(Format{name: "json"}, everything).parse([]byte(line), alone)
		if why != whyAlone || told(e) != told(alone) {
			t.Errorf("%s is %s %s after other lines, alone %s %s", line, told(e), why, told(alone), whyAlone)
		}
	}
}

// What encoding/json writes is read back.
func FuzzJSONWritten(f *testing.F) {
	f.Add("198.18.0.1", "/a\"b\\\n", "é", "ts2")
	f.Fuzz(func(t *testing.T, addr, target, agent, other string) {
		for _, s := range []string{addr, target, agent} {
			if s == "" || s == "-" || !utf8.ValidString(s) {
				return
			}
		}
		if strings.ContainsAny(addr, ", \t+\"") {
			return // it may be a list
		}
		line, err := json.Marshal([]any{other, map[string]any{
			"ts": 1765962181.000001, "remote_addr": addr, "other": other,
			"req": map[string]any{"uri": target, "headers": map[string]any{"User-Agent": []string{agent, other}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, object, _ := strings.Cut(string(line), `,{"`)
		object = `{"` + strings.TrimSuffix(object, "]")
		if !json.Valid([]byte(object)) {
			return // other held the text that was cut at
		}
		e := newEntry()
		if why := newParser(Format{name: "json"}, everything).parse([]byte(object), e); why != "" {
			t.Fatalf("%s: %s", object, why)
		}
		if want := "1|" + addr + "||" + target + "|||" + agent; told(e) != want {
			t.Errorf("%s\n got %q\nwant %q", object, told(e), want)
		}
	})
}

func FuzzJSONLine(f *testing.F) {
	f.Add([]byte(`{"ts":1765962181,"request":{"client_ip":"198.18.0.1","headers":{"User-Agent":["a\u00e4\\"]}},"x":[{}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		parseAnything(t, Format{name: "json"}, line)
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' || !json.Valid(line) || bytes.ContainsAny(line, "\n\t\r") {
			return
		}
		e := newEntry()
		if why := newParser(Format{name: "json"}, everything).parse(line, e); strings.HasPrefix(why, "not ") {
			t.Errorf("%q is JSON, but: %s", line, why)
		}
	})
}
