//go:build gateways

package gateways

import (
	"slices"
	"strings"
	"testing"
)

// front passes on what a client sends, as proxies do, and adds the client to X-Forwarded-For.
const front = `
daemon off;
pid front.pid;
error_log stderr warn;
events {}
http {
	access_log off;
	client_body_temp_path tmp;
	proxy_temp_path tmp;
	fastcgi_temp_path tmp;
	uwsgi_temp_path tmp;
	scgi_temp_path tmp;
	server {
		listen 127.0.0.1:8000;
		location / {
			proxy_pass http://127.0.0.1:8888;
			proxy_bind 127.0.0.2;
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Proto $scheme;
		}
	}
}
`

// behind are the edits, by the file of a gateway, for one behind the proxy 192.0.2.1.
var behind = map[string]func(t *testing.T, files map[string]string){
	"nginx.conf": func(t *testing.T, files map[string]string) {
		files["nginx.conf"] = inserted(t, files["nginx.conf"], "listen 127.0.0.1:8000;\n", files["behind.conf"])
	},
	"lua.conf": func(t *testing.T, files map[string]string) {
		files["lua.conf"] = inserted(t, files["lua.conf"], "listen 127.0.0.1:8000;\n", files["behind.conf"])
	},
	"Caddyfile": func(t *testing.T, files map[string]string) {
		files["headgate.yaml"] = edit(t, files["headgate.yaml"], "127.0.0.1/32", "127.0.0.1/32, 192.0.2.1/32")
		for _, block := range []string{"reverse_proxy 127.0.0.1:8080 {\n", "reverse_proxy 127.0.0.1:3000 {\n"} {
			files["Caddyfile"] = inserted(t, files["Caddyfile"], block, files["behind"])
		}
	},
	"haproxy.cfg": func(t *testing.T, files map[string]string) {
		files["haproxy.cfg"] = inserted(t, files["haproxy.cfg"], "bind 127.0.0.1:8000\n", files["behind.cfg"])
	},
	"envoy.yaml": func(_ *testing.T, files map[string]string) {
		files["headgate.yaml"] = "trust: [192.0.2.1/32]\n" + files["headgate.yaml"]
	},
	"apache.conf": func(_ *testing.T, files map[string]string) {
		files["apache.conf"] += files["behind.conf"]
	},
}

// inserted returns text with more after a line.
func inserted(t *testing.T, text, line, more string) string {
	t.Helper()
	if more == "" {
		t.Fatal("the page has no lines for a proxy in front")
	}
	return edit(t, text, line, line+more)
}

// A client that is behind two proxies chooses neither its rule nor its address.
func TestTwoProxies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g gateway) {
		found := files(t, g.page)
		behind[g.config](t, found)
		for name, text := range found {
			found[name] = strings.ReplaceAll(text, "192.0.2.1", "127.0.0.2")
		}
		g.rules = "\n  - {name: host, match: {host: 127.0.0.1}, key: ip, limits: 3/h}\n"
		s := g.openWith(t, found)
		dir, address := directory(t), freeAddress(t)
		config := edit(t, front, "127.0.0.1:8888", strings.TrimPrefix(s.url, "http://"))
		write(t, dir, map[string]string{"front.conf": edit(t, config, "127.0.0.1:8000", address)})
		start(t, dir, "nginx", "-p", ".", "-e", "stderr", "-c", "front.conf")
		until(t, "the front listens", func() bool { return reachable(t, address) })
		s.url = "http://" + address
		fields := "Host: 127.0.0.1\r\n" + strings.Join(forged, "\r\n") + "\r\nConnection: close\r\n\r\n"
		for _, client := range []string{"127.0.0.11", "127.0.0.12", "127.0.0.13"} {
			var got []int
			for range 3 {
				got = append(got, s.from(t, client, "POST /login HTTP/1.1\r\nContent-Length: 0\r\n"+fields))
			}
			for range 2 { // the login is one of the 3 of its host, too
				got = append(got, s.from(t, client, "GET / HTTP/1.1\r\n"+fields))
			}
			if want := []int{200, 200, 429, 200, 429}; !slices.Equal(got, want) {
				t.Errorf("%s: %v; want %v", client, got, want)
			}
		}
		if got := s.app.since(); len(got) != 9 {
			t.Errorf("the app got %q", got)
		}
	})
}
