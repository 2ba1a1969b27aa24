package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Whatever a client without the token sends, nothing changes: no override, no mode and no key.
func FuzzWithoutToken(f *testing.F) {
	for _, body := range []string{
		`{"act":"ban","rule":"api","key":"ip:192.0.2.1","for_s":600}`,
		`{"act":"reset","rule":"api","key":"ip:192.0.2.1"}`,
		`{"act":"raise","rule":"api","key":"ip:192.0.2.1","limits":["100/m"]}`,
		`{"act":"mode","rule":"api","mode":"shadow"}`,
		`{"rule":"api","limits":["10/m"]}`,
	} {
		for _, path := range []string{"acts", "acts/x/undo", "what-if", "key?key=k", "config"} {
			f.Add("POST", "/console/api/"+path, "Authorization", "Bearer x", "127.0.0.1", body)
			f.Add("PUT", "/console//api/./"+path, "Origin", "null", "evil.example", body)
			f.Add("GET", "/console/api/"+path, "X-Http-Method-Override", "POST", "[::1]:80", body)
		}
	}
	c := newConsole(f, nil, secret)
	c.Listen(onlyHere)
	limit := headgate.FixedWindow(5, 1000*time.Hour).Named("api")
	take := headgate.Request{Key: "ip:192.0.2.1", Limit: limit, Cost: 3}
	if _, err := c.options.Store.Take(f.Context(), take); err != nil {
		f.Fatal(err)
	}
	take.Cost = 0
	f.Fuzz(func(t *testing.T, method, target, name, value, host, body string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || strings.Contains(value, secret) || strings.HasSuffix(at.Path, "/events") {
			t.Skip()
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Method, r.URL, r.Host = method, at, host
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(name, value)
		w := answer(c, r)
		if method != "GET" && method != "HEAD" && w.Code < 300 {
			t.Errorf("%s %s: %d", method, target, w.Code)
		}
		if file, put := c.options.Overrides.List(); len(file)+len(put) > 0 {
			t.Errorf("%v %v", file, put)
		}
		d, err := c.options.Store.Take(t.Context(), take)
		if err != nil || d.Remaining != 2 {
			t.Errorf("%v, %d tokens are left, want 2", err, d.Remaining)
		}
		for _, rule := range c.rules {
			if got := c.mode(&rule); got != rule.Mode {
				t.Errorf("the mode of %s is %s", rule.Name, got)
			}
		}
	})
}
