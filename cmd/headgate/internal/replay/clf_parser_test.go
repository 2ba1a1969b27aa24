package replay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const at0903 = 1765962181 * 1_000_000 // 17/Dec/2025:09:03:01 +0000

// told is an entry as text: at, addr, method, target, host and headers.
func told(e *entry) string {
	s := fmt.Appendf(nil, "%d|%s|%s|%s|%s", e.at-at0903, e.addr, e.method, e.target, e.host)
	for _, h := range e.headers {
		s = append(append(s, '|'), h...)
	}
	return string(s)
}

var everything = wanted{request: true, headers: []string{"referer", "useragent"}}

func newEntry() *entry { return &entry{headers: make([][]byte, len(everything.headers))} }

func TestCLF(t *testing.T) {
	const when = "[17/Dec/2025:09:03:01 +0000]"
	for _, c := range []struct{ name, line, want string }{
		{"combined", `198.18.0.1 - - ` + when + ` "GET /a?b=1 HTTP/1.1" 502 166 "https://x/" "Mozilla/5.0 (X11)"`, "0|198.18.0.1|GET|/a?b=1||https://x/|Mozilla/5.0 (X11)"},
		{"common", `198.18.0.1 - - ` + when + ` "GET /a HTTP/1.0" 200 -`, "0|198.18.0.1|GET|/a|||"},
		{"no referer", `198.18.0.1 - - ` + when + ` "GET /a HTTP/1.0" 200 5 "-" "-"`, "0|198.18.0.1|GET|/a|||"},
		{"user name", `198.18.0.1 - frank ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|||"},
		{"identity", `198.18.0.1 ident frank ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|||"},
		{"spaces and brackets in the user name", `198.18.0.1 - ';echo '[S]';cd /tmp; wget x -O b' ` + when + ` "GET /a HTTP/1.1" 502 1 "-" "Go"`, "0|198.18.0.1|GET|/a|||Go"},
		{"virtual host", `example.com:443 198.18.0.1 - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|example.com:443||"},
		{"virtual host and user name", `example.com 198.18.0.1 - frank of x ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|example.com||"},
		{"virtual host and host name", `example.com client.example.net - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|client.example.net|GET|/a|example.com||"},
		{"host name", `client.example.net - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|client.example.net|GET|/a|||"},
		{"IPv6", `2001:db8::1 - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|2001:db8::1|GET|/a|||"},
		{"IPv6 in brackets with port", `[2001:db8::1]:4711 - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|[2001:db8::1]:4711|GET|/a|||"},
		{"port", `198.18.0.1:4711 - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1:4711|GET|/a|||"},
		{"forwarded-for list", `203.0.113.9, 198.18.0.2, 198.18.0.1 - - ` + when + ` "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|||"},
		{"escaped quote", `198.18.0.1 - - ` + when + ` "GET /a\"b HTTP/1.0" 200 5 "-" "a \"b\" c"`, `0|198.18.0.1|GET|/a\"b|||a \"b\" c`},
		{"backslash before the quote", `198.18.0.1 - - ` + when + ` "GET /a HTTP/1.0\\" 200 5 "-" "a\\"`, `0|198.18.0.1|GET|/a|||a\\`},
		{"bare quote", `198.18.0.1 - - ` + when + ` "GET /a"b HTTP/1.0" 200 5 "-" "x"`, `0|198.18.0.1|GET|/a"b|||x`},
		{"quote closed early", `198.18.0.1 - - ` + when + ` "GET" /a HTTP/1.0" 404 5 "-" "x"`, "0|198.18.0.1|GET|/a|||x"},
		{"quote closed early and never again", `198.18.0.1 - - ` + when + ` "GET" /a HTTP/1.0 404 5`, "0|198.18.0.1|GET|/a|||"},
		{"spaces in the target", `198.18.0.1 - - ` + when + ` "GET /a b c HTTP/1.1" 404 5`, "0|198.18.0.1|GET|/a b c|||"},
		{"HTTP/0.9", `198.18.0.1 - - ` + when + ` "GET /a" 404 5`, "0|198.18.0.1|GET|/a|||"},
		{"no target", `198.18.0.1 - - ` + when + ` "GET HTTP/1.1" 400 5`, "0|198.18.0.1|GET||||"},
		{"dash for a request", `198.18.0.1 - - ` + when + ` "-" 408 - "-" "-"`, "0|198.18.0.1|||||"},
		{"empty request", `198.18.0.1 - - ` + when + ` "" 400 0 "-" "-"`, "0|198.18.0.1|||||"},
		{"TLS", `198.18.0.1 - - ` + when + ` "\x16\x03\x01 \x00" 400 157 "-" "-"`, "0|198.18.0.1|||||"},
		{"raw bytes", "198.18.0.1 - - " + when + " \"GET /\xff\xfe HTTP/1.1\" 400 157 \"-\" \"\xff\"", "0|198.18.0.1|GET|/\xff\xfe|||\xff"},
		{"cut off in the request", `198.18.0.1 - - ` + when + ` "GET /a`, "0|198.18.0.1|GET|/a|||"},
		{"cut off in the agent", `198.18.0.1 - - ` + when + ` "GET /a HTTP/1.1" 200 5 "-" "Moz`, "0|198.18.0.1|GET|/a|||Moz"},
		{"cut off after the time", `198.18.0.1 - - ` + when, "0|198.18.0.1|||||"},
		{"another zone", `198.18.0.1 - - [17/Dec/2025:17:03:01 +0800] "GET /a HTTP/1.0" 200 5`, "0|198.18.0.1|GET|/a|||"},
		{"fields added at the end", `198.18.0.1 - - ` + when + ` "GET /a HTTP/1.1" 200 5 "-" "x" "198.18.0.9" rt=0.1`, "0|198.18.0.1|GET|/a|||x"},

		{"error log", `[Wed Dec 17 09:03:01 2025] [error] [client 198.18.0.1] no`, "not in a known format"},
		{"nginx error log", `2025/12/17 09:03:01 [error] 12#0: *1 no`, "not in a known format"},
		{"no client", when + ` "GET /a HTTP/1.0" 200 5`, "not in a known format"},
		{"no such day", `198.18.0.1 - - [32/Dec/2025:09:03:01 +0000] "GET /a HTTP/1.0" 200 5`, "not in a known format"},
		{"time cut off", `198.18.0.1 - - [17/Dec/2025:09`, "not in a known format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEntry()
			got := newParser(Format{name: "combined"}, everything).parse([]byte(c.line), e)
			if got == "" {
				got = told(e)
			}
			if got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
			}
		})
	}
}

// What a server writes, it reads back: every byte that a server escapes, escaped.
func FuzzCLFWritten(f *testing.F) {
	f.Add("198.18.0.1", "/a b", "Mozilla/5.0 \"x\"")
	f.Add("::1", "/?q=[17/Dec/2025:09:03:01 +0000]", "\\")
	f.Fuzz(func(t *testing.T, addr, target, agent string) {
		if addr == "" || !hostName.MatchString(addr) && !isAddress([]byte(addr)) || target == "" || strings.HasPrefix(target, " ") || strings.HasSuffix(target, " ") ||
			strings.Contains(target, " HTTP/") || strings.HasPrefix(target, "HTTP/") || strings.ContainsAny(target+agent, "\"\\\n") || agent == "-" {
			return
		}
		line := addr + ` - - [17/Dec/2025:09:03:01 +0000] "GET ` + target + ` HTTP/1.1" 200 5 "-" "` + agent + `"`
		e := newEntry()
		if why := newParser(Format{name: "combined"}, everything).parse([]byte(line), e); why != "" {
			t.Fatalf("%q: %s", line, why)
		}
		if want := "0|" + addr + "|GET|" + target + "|||" + agent; told(e) != want {
			t.Errorf("%q\n got %q\nwant %q", line, told(e), want)
		}
	})
}

func FuzzCLFLine(f *testing.F) {
	f.Add([]byte(`198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "GET /a HTTP/1.1" 502 166 "https://x/" "Mozilla/5.0"`))
	f.Add([]byte(`h 198.18.0.1 - [ [17/Dec/2025:09:03:01 +0000] "GET" /a HTTP/1.0" 404 5 "\"`))
	f.Fuzz(func(t *testing.T, line []byte) { parseAnything(t, Format{name: "combined"}, line) })
}

// parseAnything holds what is true of any line: reading it changes nothing, ends
// the same way twice, and gives either a reason or a time and parts of the line.
func parseAnything(t *testing.T, f Format, line []byte) {
	if len(line) == 0 || bytes.IndexByte(line, '\n') >= 0 {
		return
	}
	before := bytes.Clone(line)
	p, e := newParser(f, everything), newEntry()
	why := p.parse(line, e)
	first := told(e)
	e.clear(nil)
	if again := p.parse(line, e); again != why || why == "" && told(e) != first {
		t.Errorf("%q read twice: %s %s, then %s %s", line, why, first, again, told(e))
	}
	if !bytes.Equal(line, before) {
		t.Errorf("reading %q changed it to %q", before, line)
	}
	if why == "" && (e.at < 1 || e.at >= latest) {
		t.Errorf("%q has the time %d", line, e.at)
	}
	for _, name := range []string{"ip", "path", "method", "host", "ip,path,host", "all"} {
		by, _ := ParseBy(name)
		k := keyer{by: by}
		if key, why := k.make(e); (len(key) == 0) != (why != "") {
			t.Errorf("%q by %s has the key %q and the reason %q", line, name, key, why)
		}
	}
}
