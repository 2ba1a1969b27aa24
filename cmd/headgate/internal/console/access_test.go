package console

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/internal/problem"
)

var (
	onlyHere   = &net.TCPAddr{IP: net.IPv6loopback, Port: 1}
	everywhere = &net.TCPAddr{IP: net.IPv6zero, Port: 1}
)

const secret = "0123456789abcdef"

// request returns a request for the console of this machine, and changes it by fields in turn:
// names and values, where Host is the host that is asked for.
func request(t testing.TB, method, path string, fields ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8080/console/"+path,
		bytes.NewReader([]byte("{}")))
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
		} else {
			r.Header.Set(fields[i], fields[i+1])
		}
	}
	return r
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Who may read and who may act, by where the server listens, whether it has tokens, and what the
// request says.
func TestAccess(t *testing.T) {
	bearer := []string{"Authorization", "Bearer " + secret}
	wrong := []string{"Authorization", "Bearer " + secret + "0"}
	json := []string{"Content-Type", "application/json"}
	with := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, c := range []struct {
		name              string
		public, tokens    bool
		fields            []string
		page, read, write int // status codes
	}{
		{"here, no tokens", false, false, nil, 200, 200, 403},
		{"here, no tokens, JSON", false, false, json, 200, 200, 403},
		{"here, no tokens, a token", false, false, with(bearer, json), 200, 200, 403},
		{"here, no tokens, localhost", false, false, []string{"Host", "LOCALHOST:8080"}, 200, 200, 403},
		{"here, no tokens, IPv6", false, false, []string{"Host", "[::1]:8080"}, 200, 200, 403},
		{"here, no tokens, another address of loopback", false, false, []string{"Host", "127.9.9.9"}, 200, 200, 403},
		{"here, no tokens, another name", false, false, []string{"Host", "evil.example:8080"}, 200, 403, 403},
		{"here, no tokens, a name like it", false, false, []string{"Host", "localhost.example"}, 200, 403, 403},
		{"here, no tokens, another address", false, false, []string{"Host", "192.0.2.1"}, 200, 403, 403},
		{"here, no tokens, no host", false, false, []string{"Host", ""}, 200, 403, 403},
		{"here, no tokens, a proxy", false, false, []string{"X-Forwarded-For", "192.0.2.1"}, 200, 403, 403},
		{"here, no tokens, a proxy of RFC 7239", false, false, []string{"Forwarded", "for=192.0.2.1"}, 200, 403, 403},
		{"here, no tokens, Via", false, false, []string{"Via", "1.1 a"}, 200, 403, 403},
		{"here, no tokens, another site", false, false, []string{"Sec-Fetch-Site", "cross-site"}, 200, 403, 403},
		{"here, no tokens, a site of the same name", false, false, []string{"Sec-Fetch-Site", "same-site"}, 200, 403, 403},
		{"here, no tokens, its page", false, false, []string{"Sec-Fetch-Site", "same-origin"}, 200, 200, 403},
		{"here, tokens", false, true, json, 200, 200, 401},
		{"here, tokens, right", false, true, with(bearer, json), 200, 200, 200},
		{"here, tokens, right, no JSON", false, true, bearer, 200, 200, 415},
		{"here, tokens, right, a form", false, true, with(bearer, []string{"Content-Type", "application/x-www-form-urlencoded"}), 200, 200, 415},
		{"here, tokens, wrong", false, true, with(wrong, json), 200, 401, 401},
		{"here, tokens, basic", false, true, with([]string{"Authorization", "Basic " + secret}, json), 200, 401, 401},
		{"here, tokens, right, another name", false, true, with(bearer, json, []string{"Host", "console.example"}), 200, 200, 200},
		{"here, tokens, none, another name", false, true, with(json, []string{"Host", "console.example"}), 200, 401, 401},
		{"here, tokens, right, a proxy", false, true, with(bearer, json, []string{"X-Forwarded-For", "192.0.2.1"}), 200, 200, 200},
		{"here, tokens, right, another site", false, true, with(bearer, json, []string{"Sec-Fetch-Site", "cross-site"}), 200, 403, 403},
		{"here, tokens, right, another origin", false, true, with(bearer, json, []string{"Origin", "https://evil.example"}), 200, 200, 403},
		{"here, tokens, right, its origin", false, true, with(bearer, json, []string{"Origin", "http://127.0.0.1:8080"}), 200, 200, 200},
		{"beyond, no tokens", true, false, json, 404, 404, 404},
		{"beyond, no tokens, a token", true, false, with(bearer, json), 404, 404, 404},
		{"beyond, tokens", true, true, json, 200, 401, 401},
		{"beyond, tokens, right", true, true, with(bearer, json), 200, 200, 200},
		{"beyond, tokens, wrong", true, true, with(wrong, json), 200, 401, 401},
		{"beyond, tokens, right, another name", true, true, with(bearer, json, []string{"Host", "console.example"}), 200, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tokens []string
			if c.tokens {
				tokens = []string{"other", secret}
			}
			h := newConsole(t, nil, tokens...)
			h.api.Listen(onlyHere)
			if c.public {
				h.api.Listen(everywhere)
			}
			changed := false
			h.get("read", func(w http.ResponseWriter, _ *http.Request) error { return httpapi.Reply(w, 1) })
			h.post("write", func(w http.ResponseWriter, _ *http.Request) error {
				changed = true
				return httpapi.Reply(w, 1)
			})
			for what, want := range map[string]int{"": c.page, "api/read": c.read} {
				if w := answer(h, request(t, "GET", what, c.fields...)); w.Code != want {
					t.Errorf("GET %s: %d %s, want %d", what, w.Code, w.Body, want)
				}
			}
			w := answer(h, request(t, "POST", "api/write", c.fields...))
			if w.Code != c.write || changed != (w.Code == 200) {
				t.Errorf("POST: %d %s, want %d; changed: %t", w.Code, w.Body, c.write, changed)
			}
			for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"} {
				r := request(t, method, "api/write", c.fields...)
				if w := answer(h, r); w.Code != http.StatusNotFound {
					t.Errorf("%s api/write: %d", method, w.Code)
				}
			}
			checkSaid(t, h.Handler, c.read == 200, c.write == 200 || c.write == 415, c.fields)
		})
	}
}

// checkSaid checks that api/access says what is so.
func checkSaid(t *testing.T, h *Handler, read, act bool, fields []string) {
	t.Helper()
	w := answer(h, request(t, "GET", "api/access", fields...))
	if w.Code == http.StatusNotFound {
		return
	}
	var said access
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil {
		t.Fatal(err, w.Body)
	}
	otherOrigin := strings.Contains(strings.Join(fields, " "), "evil.example")
	if said.MayRead != read || said.MayAct != act && !otherOrigin || (said.Why == "") != said.MayAct {
		t.Errorf("%s, and it may read: %t, act: %t", w.Body, read, act)
	}
	if (said.Instance != "") != said.MayRead {
		t.Errorf("%s: only a client that may read gets the name of the instance", w.Body)
	}
	if strings.Contains(w.Body.String(), secret) {
		t.Errorf("the answer has the token: %s", w.Body)
	}
}

// Errors are problem documents with what to do.
func TestProblems(t *testing.T) {
	h := newConsole(t, nil)
	h.api.Listen(everywhere)
	w := answer(h, request(t, "GET", ""))
	var p problem.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || !strings.Contains(p.Detail, "api.tokens") {
		t.Errorf("%v %s", err, w.Body)
	}
	h.api.Listen(onlyHere)
	if w := answer(h, request(t, "GET", "api/nothing")); w.Code != 404 ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The files of the page hold no data, load nothing from elsewhere, and are not framed.
func TestPage(t *testing.T) {
	h := newConsole(t, nil)
	w := answer(h, request(t, "GET", ""))
	head := w.Header()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		if head.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, head.Get(name), want)
		}
	}
	policy := head.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy %s", policy)
	}
	again := request(t, "GET", "", "If-None-Match", head.Get("ETag"))
	if w := answer(h, again); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("again: %d", w.Code)
	}
	r := request(t, "GET", "")
	r.URL.Path = "/console"
	if w := answer(h, r); w.Code != 301 || w.Header().Get("Location") != "console/" {
		t.Errorf("/console: %d %s", w.Code, w.Header())
	}
	if w := answer(h, request(t, "GET", "api/access")); w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("data: %s", w.Header())
	}
}
