package replay_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

const (
	nginxXFF = `10.0.3.4 - - [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 200 5 "-" "x" "203.0.113.1"`
	iisXFF   = "#Fields: date time cs-uri-stem c-ip X-Forwarded-For\n" +
		"2025-12-17 09:03:01 / 10.0.3.4 203.0.113.1:30000,+[2001:db8::7]:4,+172.16.0.1:49770"
	caddyXFF     = `{"ts":1765962181,"request":{"remote_ip":"10.0.3.4","uri":"/","headers":{"X-Forwarded-For":["203.0.113.1"]}}}`
	afterUA      = `$remote_addr - - [$time_local] "$request" $status $_ "$_" "$_" "$http_x_forwarded_for"`
	ingressOfOld = `10.0.3.4 - [203.0.113.1, 10.0.3.4] - - [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 200 5 "-" "x" 412 0.004 [web-80] 10.1.0.7:80 5 0.004 200`
	haproxy      = `10.0.3.4:4000 [17/Dec/2025:09:03:01.376] in web/s1 0/0/1/12/13 200 512 - - ---- 5/5/0/1/0 0/0 "GET / HTTP/1.1"`
)

// The key of a line is the client that was asked for, or the line is refused with what would help.
func TestWhoseAddress(t *testing.T) {
	const when = ` [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 200 5`
	for _, c := range []struct{ name, format, fields, by, log, key, want string }{
		{"a column without a name", "auto", "client=http_x_forwarded_for", "ip", nginxXFF, "", `describe the lines by --format '$remote_addr - - [$time_local] "$request" $_`},
		{"a column without a name, forced", "combined", "client=nonsense", "ip", nginxXFF, "", "no column has a name of --field"},
		{"a time without a name", "auto", "time=when", "ip", nginxXFF, "10.0.3.4", ""},
		{"text beside JSON", "auto", "time=when", "ip", `{"when":"2025-12-17T09:03:01Z","remote_addr":"10.0.3.4"}` + "\n" + nginxXFF + "\n" + haproxy, "10.0.3.4", ""},
		{"a column with a name", afterUA, "client=http_x_forwarded_for", "ip", nginxXFF, "203.0.113.1", ""},
		{"another name", afterUA, "client=nonsense", "ip", nginxXFF, "", "no column has a name of --field"},
		{"W3C", "auto", "client=X-Forwarded-For", "ip", iisXFF, "172.16.0.1", ""},
		{"W3C of a header", "auto", "client=cs(X-Forwarded-For)", "ip", strings.Replace(iisXFF, "X-Forwarded-For", "cs(X-Forwarded-For)", 1), "172.16.0.1", ""},
		{"W3C by another name", "auto", "client=nonsense", "ip", iisXFF, "", "no column has a name of --field"},
		{"HAProxy", "auto", "client=nonsense", "ip", haproxy, "", "no column has a name of --field"},
		{"HAProxy by its own name", "auto", "client=client", "ip", haproxy, "10.0.3.4", ""},
		{"list of IIS", "auto", "", "header:X-Forwarded-For", iisXFF, "203.0.113.1,[2001:db8::7],172.16.0.1", ""},
		{"header in text", "auto", "", "header:X-Forwarded-For", nginxXFF, "", `"$http_x_forwarded_for"'`},
		{"header in JSON", "auto", "", "header:X-Real-IP", caddyXFF, "", "it has the members ts, request"},
		{"header in named text", afterUA, "", "header:X-Forwarded-For", nginxXFF, "203.0.113.1", ""},
		{"two addresses", "auto", "", "ip", "203.0.113.1 10.0.0.5 - -" + when, "", `by --format '$remote_addr $_ - - [$time_local] "$request"'`},
		{"two addresses, described", `$remote_addr $_ - - [$time_local] "$request"`, "", "ip", "203.0.113.1 10.0.0.5 - -" + when, "203.0.113.1", ""},
		{"two addresses, IPv6", "auto", "", "ip", "2001:db8::1 10.0.0.5 - -" + when, "", "no single client address before the time"},
		{"two addresses with a port", "auto", "", "ip", "203.0.113.1:50321 10.0.0.5 - -" + when, "", "no single client address before the time"},
		{"a list and an address", "auto", "", "ip", `"203.0.113.1, 203.0.113.2" 10.0.0.5 - -` + when, "", "no single client address before the time"},
		{"behind a virtual host", "auto", "", "ip", "x.org:443 10.0.0.5 (203.0.113.1) - -" + when, "", "no single client address before the time"},
		{"the same twice", "auto", "", "ip", "203.0.113.1 203.0.113.1 - -" + when, "203.0.113.1", ""},
		{"an address as virtual host", "auto", "", "ip", "127.0.1.1:80 203.0.113.1 - -" + when, "203.0.113.1", ""},
		{"an address as virtual host, IPv6", "auto", "", "ip", "[::1]:8443 203.0.113.1 - -" + when, "203.0.113.1", ""},
		{"two addresses by path", "auto", "", "path", "203.0.113.1 10.0.0.5 - -" + when, "/", ""},
		{"Traefik", "auto", "", "ip", `{"ClientAddr":"10.0.3.4:40000","ClientHost":"203.0.113.1","RequestPath":"/","StartUTC":"2025-12-17T09:03:01Z"}`, "203.0.113.1", ""},
		{"a network behind which there are others", "auto", "", "ip", strings.Replace(nginxXFF, "10.0.3.4", "2001:db8:1::1", 1), "2001:db8:1::/64", ""},
		{"the address before the last", "auto", "client=request.headers.X-Forwarded-For[-2]", "ip", strings.Replace(caddyXFF, "113.1", "113.9, 203.0.113.1, 10.0.0.1", 1), "203.0.113.1", ""},
		{"the second of the last three", "auto", "client=X-Forwarded-For[-3]", "ip", iisXFF, "203.0.113.1", ""},
		{"a shorter list", afterUA, "client=http_x_forwarded_for[-3]", "ip", strings.Replace(nginxXFF, `113.1"`, `113.1, 10.0.0.1"`, 1), "203.0.113.1", ""},
		{"a list in brackets", `$_ - [$http_x_forwarded_for] - $_ [$time_local]`, "client=http_x_forwarded_for[-2]", "ip", ingressOfOld, "203.0.113.1", ""},
		{"an array of several texts", "auto", "client=request.headers.X-Forwarded-For[-2]", "ip", strings.Replace(caddyXFF, `113.1"`, `113.9","203.0.113.1", "10.0.0.1"`, 1), "203.0.113.1", ""},
		{"the last of several texts", "auto", "client=request.headers.X-Forwarded-For", "ip", strings.Replace(caddyXFF, `"203`, `"6.6.6.6","203`, 1), "203.0.113.1", ""},
		{"IPv6 with a port before a colon", `[$time_local] ip=$client:$_`, "", "ip", `[17/Dec/2025:09:03:01 +0000] ip=[2001:db8:1:2:3::7]:443 x`, "2001:db8:1:2::/64", ""},
		{"an array of texts", "auto", "client=request.headers.X-Forwarded-For", "ip", caddyXFF, "203.0.113.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := config(t, c.by, "1/h")
			var err, errNames error
			config.Format, err = replay.ParseFormat(c.format)
			config.Names, errNames = replay.ParseNames(c.fields)
			if err != nil || errNames != nil {
				t.Fatal(err, errNames)
			}
			report, err := replay.Run(t.Context(), config, replay.Log{Name: "a", Reader: strings.NewReader(strings.Repeat(c.log+"\n", 2))})
			switch {
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%+v %v; want an error with %q", report, err, c.want)
				}
			case err != nil || len(report.Limits[0].Top) != 1 || string(report.Limits[0].Top[0].Key) != c.key:
				t.Errorf("%+v %v; want the key %s", report, err, c.key)
			}
		})
	}
}

// A log that names a proxy as its client says so, and only if the requests have other clients.
func TestProxied(t *testing.T) {
	own := strings.Replace(nginxXFF, "203.0.113.1", "10.0.3.4", 1)
	trusted := strings.Replace(caddyXFF, `"remote_ip"`, `"client_ip":"203.0.113.1","remote_ip"`, 1)
	for _, c := range []struct{ name, format, fields, by, log, want string }{
		{"last column", "auto", "", "ip", nginxXFF, "10.0.3.4"},
		{"last column of a list", "auto", "", "ip", strings.Replace(nginxXFF, `113.1"`, `113.1, 10.0.3.4"`, 1), "10.0.3.4"},
		{"a column before others", "auto", "", "ip", nginxXFF + ` "0.003" 1`, "10.0.3.4"},
		{"a list at the beginning", "auto", "", "ip", strings.Replace(own, "10.0.3.4 -", "203.0.113.1, 10.0.3.4 -", 1), "10.0.3.4"},
		{"a server behind its host", "auto", "", "ip", strings.Replace(own, `"10.0.3.4"`, `"-" "0:00:01"`, 1), ""},
		{"array of JSON", "auto", "", "ip", caddyXFF, "10.0.3.4"},
		{"member of JSON", "auto", "", "ip", `{"time":1765962181,"remote_addr":"10.0.3.4:1","http_x_forwarded_for":"203.0.113.1","uri":"/"}`, "10.0.3.4"},
		{"Tomcat", "auto", "", "ip", `10.0.3.4 - - [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 200 5 X-Forwarded-For="203.0.113.1"`, "10.0.3.4"},
		{"ingress-nginx of old", "auto", "", "ip", ingressOfOld, "10.0.3.4"},
		{"ingress-nginx of old, in CRI", "auto", "", "ip", "2030-01-01T00:00:00.1Z stdout F " + ingressOfOld, "10.0.3.4"},
		{"ingress-nginx of old, without a proxy", "auto", "", "ip", strings.Replace(ingressOfOld, "203.0.113.1, ", "", 1), ""},
		{"the client", "auto", "", "ip", own, ""},
		{"the client, and its port", "auto", "", "ip", strings.Replace(own, "10.0.3.4 ", "10.0.3.4:50 ", 1), ""},
		{"trusted", "auto", "", "ip", trusted, ""},
		{"none", "auto", "", "ip", strings.Replace(nginxXFF, `"203.0.113.1"`, `"-"`, 1), ""},
		{"an upstream", "auto", "", "ip", strings.Replace(nginxXFF, `113.1"`, `113.1:80"`, 1), ""},
		{"in less than half", "auto", "", "ip", nginxXFF + "\n" + own + "\n" + own, ""},
		{"a client that was chosen", "auto", "client=request.remote_ip", "ip", caddyXFF, ""},
		{"a client that was described", afterUA, "", "ip", nginxXFF, ""},
		{"another key", "auto", "", "path", caddyXFF, ""},
	} {
		config := config(t, c.by, "1/h")
		config.Format, _ = replay.ParseFormat(c.format)
		config.Names, _ = replay.ParseNames(c.fields)
		report, err := replay.Run(t.Context(), config, replay.Log{Name: "a", Reader: strings.NewReader(strings.Repeat(c.log+"\n", 2000))})
		if err != nil || report.Proxy != c.want {
			t.Errorf("%s: %v %v; want %q", c.name, report, err, c.want)
		}
	}
}

// Compressed bytes after text are files that were joined: the run fails, however few they are.
func TestCompressedAfterText(t *testing.T) {
	good := strings.Repeat(nginxXFF+"\n", 500)
	for _, bad := range []string{string(compressed([]byte(nginxXFF))), "BZh91AY&SY\xff\x00\x01\n"} {
		report, err := replay.Run(t.Context(), config(t, "ip", "1/h"), replay.Log{Name: "a", Reader: strings.NewReader(good + bad)})
		if err == nil || !strings.Contains(err.Error(), "a: line 501 is compressed") {
			t.Errorf("%+v %v; want an error", report, err)
		}
	}
	for _, fine := range []string{"\x00\x00\x00" + nginxXFF, strings.Replace(nginxXFF, "/ HTTP", "/\xff\x00 HTTP", 1)} {
		if report, err := replay.Run(t.Context(), config(t, "ip", "1/h"), replay.Log{Name: "a", Reader: strings.NewReader(good + fine)}); err != nil || report.Unreadable() != nil {
			t.Errorf("%v %v; want one line skipped or read", report, err)
		}
	}
}
