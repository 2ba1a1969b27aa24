package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

func newDemo(t testing.TB, store headgate.Store) *Demo {
	t.Helper()
	d, err := New(store, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request is one request as the page makes it, and where its answer goes.
func request(ctx context.Context, method, path, contentType, body string) (*http.Request, *httptest.ResponseRecorder) {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r, httptest.NewRecorder()
}

// ask is one request as the page makes it, and its answer.
func ask(d *Demo, method, path, contentType, body string) *httptest.ResponseRecorder {
	r, w := request(context.Background(), method, path, contentType, body)
	d.ServeHTTP(w, r)
	return w
}

const form = formType

// want fails unless w is an answer of this status and body, in one line.
func want(t *testing.T, what string, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if got := strings.TrimSuffix(w.Body.String(), "\n"); w.Code != status || got != body {
		t.Errorf("%s: %d %s\nwant %d %s", what, w.Code, got, status, body)
	}
}

func read[T any](t testing.TB, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

func TestDocumentedEndpoints(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	const first = `"config":{"capacity":10,"refill_rate":1,"refill_interval":1}}`
	want(t, "the first", ask(d, "POST", "/test", "", ""), 200, `{"allowed":true,"remaining":9,`+first)
	want(t, "nothing changed", ask(d, "POST", "/config", "", ""), 200, `{"success":true,`+first)
	want(t, "a change keeps what was consumed",
		ask(d, "POST", "/config", form, "capacity=3&refill_rate=0.5&refill_interval=60"), 200,
		`{"success":true,"config":{"capacity":3,"refill_rate":0.5,"refill_interval":60}}`)
	for _, left := range []string{"1", "0"} {
		want(t, "the next", ask(d, "POST", "/test", form, ""), 200,
			`{"allowed":true,"remaining":`+left+`,"config":{"capacity":3,"refill_rate":0.5,"refill_interval":60}}`)
	}
	want(t, "the last", ask(d, "POST", "/test", "", ""), 200,
		`{"allowed":false,"remaining":0,"config":{"capacity":3,"refill_rate":0.5,"refill_interval":60}}`)
	if got := read[state](t, ask(d, "GET", "/api/state", "", "")).Lanes[0].Limit; got != "1/2m burst 3 stepped" {
		t.Errorf("half a token each minute is %s", got)
	}
	for _, contentType := range []string{jsonType, form} { // curl -d sends the latter
		want(t, "an empty object", ask(d, "POST", "/test", contentType, "{}"), 200,
			`{"allowed":false,"remaining":0,"config":{"capacity":3,"refill_rate":0.5,"refill_interval":60}}`)
	}
	want(t, "JSON", ask(d, "POST", "/config", jsonType, `{"capacity":4,"refill_rate":"0.25"}`), 200,
		`{"success":true,"config":{"capacity":4,"refill_rate":0.25,"refill_interval":60}}`)
	want(t, "one field", ask(d, "POST", "/config", form, "capacity=5"), 200,
		`{"success":true,"config":{"capacity":5,"refill_rate":0.25,"refill_interval":60}}`)
	if w := ask(d, "POST", "/api/limits", jsonType, `{"left":"7/m fixed-window"}`); w.Code != 200 {
		t.Error(w.Body)
	}
	want(t, "a window in those words", ask(d, "POST", "/test", "", ""), 200,
		`{"allowed":true,"remaining":6,"config":{"capacity":7,"refill_rate":7,"refill_interval":60}}`)
}

func TestExactConfig(t *testing.T) {
	for _, c := range []struct{ form, limit string }{
		{"capacity=10&refill_rate=2.5&refill_interval=1", "5/2s burst 10 stepped"},
		{"capacity=10.0&refill_rate=1.50&refill_interval=0.1", "3/200ms burst 10 stepped"},
		{"capacity=4&refill_rate=4&refill_interval=.5", "4/500ms stepped"},
		{"capacity=1&refill_rate=0.001&refill_interval=0.000001", "1/ms stepped"},
		{"refill_rate=%203%20", "3/s burst 10 stepped"},
	} {
		d := newDemo(t, headgate.NewMemory())
		if w := ask(d, "POST", "/config", form, c.form); w.Code != 200 {
			t.Errorf("%s: %s", c.form, w.Body)
		}
		if got := read[state](t, ask(d, "GET", "/api/state", "", "")).Lanes[0].Limit; got != c.limit {
			t.Errorf("%s is %s, want %s", c.form, got, c.limit)
		}
	}
}

func TestBadInput(t *testing.T) {
	const limits = `want JSON such as {\"left\": \"1/s burst 10\", \"right\": \"10/10s fixed-window\", \"reset\": true}`
	d := newDemo(t, headgate.NewMemory())
	before := ask(d, "GET", "/api/state", "", "").Body.String()
	for _, c := range []struct {
		path, contentType, body, says string
	}{
		{"/config", form, "capacity=0", `capacity is \"0\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "capacity=-1", `capacity is \"-1\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "capacity=1.5", `capacity is \"1.5\"; want a whole number of at least 1`},
		{"/config", form, "capacity=", `capacity is \"\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "capacity=1&capacity=2", `capacity is given twice; want one number`},
		{"/config", form, "refill_rate=1e999", `refill_rate is \"1e999\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "refill_rate=0.0000000001", `refill_rate is \"0.0000000001\"; want a whole or decimal number, at least 1 in 285 years and at most 9007199254740991, without exponent`},
		{"/config", form, "refill_interval=0.0000001", `refill_interval is 0.0000001; want seconds with at most 6 decimals, within 285 years`},
		{"/config", form, "refill_interval=1e17", `refill_interval is 100000000000000000; want seconds with at most 6 decimals, within 285 years`},
		{"/config", form, "refill_interval=9100000000", `refill_interval is \"9100000000000000us\"; want at most 285 years`},
		{"/config", form, "capacity=9e15&refill_interval=1000000", `capacity is 9000000000000000; want at most 9007 to count a period this long exactly; a token bucket allows more`},
		{"/config", form, "refill_rate=1/3", `refill_rate is \"1/3\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "refill_rate=NaN", `refill_rate is \"NaN\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "refill_interval=0.3333333", `refill_interval is 0.3333333; want seconds with at most 6 decimals, within 285 years`},
		{"/config", form, "capacity=99999999999999999999", `capacity is \"99999999999999999999\"; want a number above 0, such as 10 or 0.5`},
		{"/config", form, "rate=1", `field is \"rate\"; want capacity, refill_rate and refill_interval`},
		{"/config", form, "%zz=1", `form is not understood; want capacity=10\u0026refill_rate=1\u0026refill_interval=1`},
		{"/config", jsonType, `{"capacity":-5}`, `capacity is \"-5\"; want a number above 0, such as 10 or 0.5`},
		{"/config", jsonType, `{"rate":5}`, `field is \"rate\"; want capacity, refill_rate and refill_interval`},
		{"/config", jsonType, `[5]`, `body is not understood (unexpected array); want JSON such as {\"capacity\": 10, \"refill_rate\": 1, \"refill_interval\": 1}`},
		{"/config", "text/plain", `capacity=5`, `Content-Type is \"text/plain\"; want application/x-www-form-urlencoded or application/json`},
		{"/config", jsonType, `{"limits": ["5/x"]}`, `body is not understood (unexpected array); want JSON such as {\"capacity\": 10, \"refill_rate\": 1, \"refill_interval\": 1}`},
		{"/api/limits", jsonType, "", `body is not understood (it is empty); ` + limits},
		{"/api/limits", jsonType, "[]", `body is not understood (unexpected array); ` + limits},
		{"/api/limits", jsonType, `{"left":1}`, `body is not understood (\"left\" is an unexpected number); ` + limits},
		{"/api/limits", jsonType, `{"speed":1}`, `body is not understood (unknown field \"speed\"); ` + limits},
		{"/api/limits", jsonType, `{} {}`, `body is more than one value; ` + limits},
		{"/api/limits", form, `{}`, `Content-Type is \"application/x-www-form-urlencoded\"; want application/json`},
		{"/api/limits", jsonType, `{"left":"ten/s"}`, `the left limit \"ten/s\": count is \"ten\"; want a whole or decimal number, at least 1 in 285 years and at most 9007199254740991, without exponent`},
		{"/api/limits", jsonType, `{"right":"7/s burst 5 sliding-log"}`, `the right limit \"7/s burst 5 sliding-log\": burst is 5; want none: only buckets have a burst`},
		{"/config?capacity=5", form, "", `query is \"capacity=5\"; want none; numbers are sent in the body`},
		{"/config?capacity=5", form, "refill_rate=2", `query is \"capacity=5\"; want none; numbers are sent in the body`},
		{"/test", form, "%zz", `form is not understood; want capacity=10\u0026refill_rate=1\u0026refill_interval=1`},
		{"/test", form, "requests=5", `body is not empty; want nothing, or {}`},
		{"/test", jsonType, `{"requests":5}`, `body is not empty; want nothing, or {}`},
		{"/test", "text/plain", "x", `Content-Type is \"text/plain\"; want application/x-www-form-urlencoded or application/json`},
		{"/api/limits", jsonType, `{"left":"10/s","right":"10/x"}`, `the right limit \"10/x\": period is \"x\"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w), or month or year`},
		{"/api/limits", jsonType, `{"left":"10/s","right":""}`, `the right limit is \"\"; want a form like \"100/m\", \"10/s burst 50\", \"5/15m sliding-log\" or \"api=1000/d fixed-window\"`},
		{"/api/limits", jsonType, `{"left":"70000/s sliding-log","right":"1/s"}`, `the left limit \"70000/s sliding-log\": count is 70000; want at most 65535 because a log keeps every grant; a sliding window allows more`},
		{"/api/limits", jsonType, `{"middle":"10/s"}`, `body is not understood (unknown field \"middle\"); ` + limits},
		{"/api/limits", jsonType, "nonsense", `body is not understood (invalid character 'o' in literal null (expecting 'u')); ` + limits},
		{"/api/requests", jsonType, `{"requests":0}`, `requests is 0; want 1 to 10000`},
		{"/api/requests", jsonType, `{"requests":10001}`, `requests is 10001; want 1 to 10000`},
		{"/api/requests", jsonType, `{"requests":1.5}`, `body is not understood (\"requests\" is an unexpected number 1.5); want JSON such as {\"requests\": 10}`},
		{"/api/requests", jsonType, `{"requests":1,"at":1e300}`, ""},
	} {
		w := ask(d, "POST", c.path, c.contentType, c.body)
		if c.says == "" {
			if w.Code != 400 || strings.Count(w.Body.String(), "\n") != 1 {
				t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
			}
			continue
		}
		want(t, c.path+" "+c.body, w, 400, `{"success":false,"error":"`+c.says+`"}`)
	}
	var was, is state
	after := ask(d, "GET", "/api/state", "", "").Body.String()
	if json.Unmarshal([]byte(before), &was) != nil || json.Unmarshal([]byte(after), &is) != nil || was.Lanes[0].Limit != is.Lanes[0].Limit ||
		was.Lanes[1].Limit != is.Lanes[1].Limit || is.Lanes[0].Remaining != 10 || is.Lanes[1].Remaining != 10 {
		t.Errorf("bad input changed\n%s to\n%s", before, after)
	}
}

func TestEveryAlgorithm(t *testing.T) {
	for algorithm, wants := range map[string][2]string{
		"token-bucket":   {"5/90s burst 10", "headgate.Per(5, 90*time.Second).Burst(10)"},
		"stepped":        {"5/90s burst 10 stepped", "headgate.SteppedTokenBucket(5, 90*time.Second).Burst(10)"},
		"fixed-window":   {"10/90s fixed-window", "headgate.FixedWindow(10, 90*time.Second)"},
		"sliding-window": {"10/90s sliding-window", "headgate.SlidingWindow(10, 90*time.Second)"},
		"sliding-log":    {"10/90s sliding-log", "headgate.SlidingLog(10, 90*time.Second)"},
	} {
		d := newDemo(t, headgate.NewMemory())
		got := read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"right":"`+wants[0]+`"}`)).Lanes[1]
		if got.Limit != wants[0] || got.Go != wants[1] || got.Algorithm != algorithm {
			t.Errorf("%s: %s, %s; want %s", got.Algorithm, got.Limit, got.Go, wants)
		}
		b := read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":25}`)).Lanes[1]
		if b.Allowed != 10 || b.Denied != 15 {
			t.Errorf("%s: %+v", algorithm, b)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPathsAndMethods(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	for _, path := range []string{"/", "/style.css", "/theme.css", "/main.js", "/icon.svg", "/api/state"} {
		if w := ask(d, "GET", path, "", ""); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("GET %s: %d", path, w.Code)
		}
		if w := ask(d, "HEAD", path, "", ""); w.Code != 200 {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
		notAllowed(t, d, "DELETE", path, "GET, HEAD")
	}
	for _, path := range []string{"/test", "/config", "/api/requests", "/api/limits"} {
		notAllowed(t, d, "GET", path, "POST")
	}
	for _, path := range []string{"/nothing", "/api/", "/api/limits/left", "/page/", "/index.html/", "/tes"} {
		if w := ask(d, "GET", path, "", ""); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// notAllowed fails unless the path refuses the method and names those that it allows.
func notAllowed(t *testing.T, d *Demo, method, path, allow string) {
	t.Helper()
	w := ask(d, method, path, "", "")
	if got := w.Header().Get("Allow"); w.Code != http.StatusMethodNotAllowed || got != allow {
		t.Errorf("%s %s: %d, allows %q; want 405, %q", method, path, w.Code, got, allow)
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	for path, cache := range map[string]string{"/": "no-cache", "/main.js": "no-cache", "/api/state": "no-store", "/nothing": "no-store", "/test": "no-store"} {
		h := ask(d, "GET", path, "", "").Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": cache,
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestContentTypes(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/style.css": "text/css; charset=utf-8",
		"/main.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml", "/api/state": "application/json", "/nothing": "text/plain; charset=utf-8",
	} {
		if got := ask(d, "GET", path, "", "").Header().Get("Content-Type"); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// Two who change one number each do not undo each other.
func TestConfigsAtOnce(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	for n := range 300 {
		var all sync.WaitGroup
		number := strconv.Itoa(n + 1)
		for _, field := range []string{"capacity=", "refill_rate=", "refill_interval="} {
			all.Go(func() { ask(d, "POST", "/config", form, field+number) })
		}
		all.Wait()
		want(t, "all three", ask(d, "POST", "/config", "", ""), 200,
			`{"success":true,"config":{"capacity":`+number+`,"refill_rate":`+number+`,"refill_interval":`+number+`}}`)
	}
}

func TestLargeBody(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	large := strings.Repeat("x", maxBody+1)
	for _, path := range []string{"/test", "/config", "/api/requests", "/api/limits"} {
		want(t, path, ask(d, "POST", path, form, large), 413, `{"success":false,"error":"the body is too large; want at most 4096 bytes"}`)
	}
	// A body without a Content-Length is read only up to the maximum.
	for path, c := range map[string][2]string{"/config": {form, "capacity="}, "/api/limits": {jsonType, `{"left":"`}} {
		body := strings.NewReader(c[1] + large + large)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080"+path, io.MultiReader(body))
		r.Header.Set("Content-Type", c[0])
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != 400 || body.Len() == 0 || strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%s: %d %s, %d bytes are left", path, w.Code, w.Body, body.Len())
		}
	}
}

func TestStrangers(t *testing.T) {
	store := headgate.NewMemory()
	for _, c := range []struct {
		bound, host, origin, site string
		status                    int
	}{
		{"", "127.0.0.1:8080", "", "", 200},
		{"", "localhost:8080", "http://localhost:8080", "", 200},
		{"", "[::1]:8080", "", "same-origin", 200},
		{"", "localhost", "", "none", 200},
		{"", "LOCALHOST:1", "", "", 200},
		{"", "127.0.0.1:8080", "http://127.0.0.1:9999", "", 403},
		{"", "127.0.0.1:8080", "https://stranger.example", "cross-site", 403},
		{"", "127.0.0.1:8080", "", "same-site", 403},
		{"", "127.0.0.1:8080", "null", "", 403},
		{"", "stranger.example:8080", "", "", 421},
		{"", "127.0.0.1.stranger.example", "", "", 421},
		{"", "192.0.2.1:8080", "", "", 421},
		{"", "", "", "", 421},
		{"0.0.0.0", "192.0.2.1:8080", "", "", 200},
		{"0.0.0.0", "stranger.example:8080", "", "", 421},
		{"box.example", "Box.Example:80", "", "", 200},
		{"box.example", "stranger.example:80", "", "", 421},
	} {
		d, err := New(store, Options{Host: c.bound})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/test", nil)
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// A store that cannot say is an answer in one line, and not a yes.
func TestStoreThatFails(t *testing.T) {
	d, err := New(failing{errors.New("no\nroute")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string][3]string{
		"/api/state": {"GET", "", ""}, "/api/requests": {"POST", jsonType, `{"requests":1000}`},
		"/api/limits": {"POST", jsonType, `{"reset":true}`}, "/test": {"POST", "", ""},
	} {
		want(t, path, ask(d, c[0], path, c[1], c[2]), 503, `{"success":false,"error":"the store is unavailable: no route"}`)
	}
	if err := d.Ping(t.Context(), time.Second); err == nil {
		t.Error("a store that fails answers a ping")
	}
}

type failing struct{ err error }

func (f failing) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, f.err
}
func (f failing) TakeAll(context.Context, []headgate.Request, []headgate.Decision) error {
	return f.err
}
func (f failing) Reset(context.Context, string, headgate.Limit) error { return f.err }

func TestOptions(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no store")
	}
}

// However many are decided at the same time, each lane grants what its limit says.
func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	store, err := redisstore.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	d, err := New(store, Options{Now: func(ctx context.Context) (time.Time, error) { return store.Client().Time(ctx).Result() }})
	if err != nil {
		t.Fatal(err)
	}
	read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"left":"100/d fixed-window","right":"70/h sliding-log"}`))
	b := read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":500}`))
	if b.Lanes[0].Allowed != 100 || b.Lanes[1].Allowed != 70 || b.Lanes[0].Denied != 400 {
		t.Errorf("%+v", b.Lanes)
	}
	if keys, err := server.Do(t.Context(), "DBSIZE"); err != nil || keys != "2" {
		t.Errorf("%s keys in Redis, %v; want one for each lane", keys, err)
	}
	s := read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"reset":true}`))
	if s.Lanes[0].Remaining != 100 || s.Lanes[0].Allowed+s.Lanes[0].Denied != 0 || s.Lanes[0].Most != 0 || len(s.Lanes[0].Fields) != 0 {
		t.Errorf("after a reset %+v", s.Lanes[0])
	}
	if drift := s.Now - epoch(time.Now()); drift < -2000 || drift > 2000 {
		t.Errorf("the clock of a Redis on this machine is %.0f ms ahead", drift)
	}
	server.Stop()
	if w := ask(d, "GET", "/api/state", "", ""); w.Code != 503 || strings.Count(w.Body.String(), "\n") != 1 {
		t.Errorf("without its Redis: %d %s", w.Code, w.Body)
	}
}

// A batch sent ahead of its time is decided at that time, by the store's clock.
func TestSentAhead(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	at := read[state](t, ask(d, "GET", "/api/state", "", "")).Now + 80
	b := read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, mustJSON(t, map[string]any{"requests": 1, "at": at})))
	if b.At < at-1 {
		t.Errorf("decided %.3f ms early", at-b.At)
	}
}

func TestServe(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, l) }()
	status := func(path string, header http.Header) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+Address(l)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		if _, err := io.Copy(io.Discard, w.Body); err != nil {
			t.Fatal(err)
		}
		return w.StatusCode
	}
	if code := status("/", nil); code != 200 {
		t.Errorf("the page: %d", code)
	}
	if code := status("/", http.Header{"X-Long": {strings.Repeat("x", 2*maxHeader)}}); code != 431 {
		t.Errorf("a long header: %d", code)
	}
	// A request that is waiting for its time does not hold up the end.
	sent, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		body := mustJSON(t, map[string]any{"requests": 1, "at": epoch(time.Now()) + 4000})
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
		r, err := http.NewRequestWithContext(trace, http.MethodPost, "http://"+Address(l)+"/api/requests", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", jsonType)
		if w, err := http.DefaultClient.Do(r); err == nil {
			w.Body.Close()
		}
	}()
	<-sent
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(3 * time.Second):
		t.Fatal("still serving")
	}
	<-over
}

// A client that sends slowly, or nothing, is disconnected; an answer has the time it needs.
func TestServerTimeouts(t *testing.T) {
	s := newDemo(t, headgate.NewMemory()).server(t.Context())
	for what, got := range map[string]time.Duration{"the header": s.ReadHeaderTimeout, "the body": s.ReadTimeout, "the next request": s.IdleTimeout} {
		if got < time.Second || got > time.Minute {
			t.Errorf("%s may take %s", what, got)
		}
	}
	if longest := s.ReadTimeout + maxAhead + 2*patience; s.WriteTimeout <= longest || s.WriteTimeout > 2*longest {
		t.Errorf("an answer may take %s, and is cut off after %s", longest, s.WriteTimeout)
	}
}

func TestAddress(t *testing.T) {
	for bound, want := range map[string]string{"127.0.0.1:0": "127.0.0.1:", "0.0.0.0:0": "localhost:"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := Address(l); !strings.HasPrefix(got, want) {
			t.Errorf("%s is found at %s", bound, got)
		}
		l.Close()
	}
}
