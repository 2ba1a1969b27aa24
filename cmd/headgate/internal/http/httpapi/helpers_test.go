package httpapi

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/redisstore"
)

// server is a running server, and what it is made of.
type server struct {
	*httptest.Server

	t         *testing.T
	handler   *Handler
	overrides *overrides.Table
	events    []rules.Event
}

// start starts a server with the rules
//
//	login    5/m, 100/d fixed-window
//	tokens   1000/h
//	exports  2 permits
//	seats    2 permits, in shadow
//	trial    1/m in shadow
//	unused   1/m, off
//	costly   100/h, of which a request takes 5
//	model    1000/h, of tokens, with an estimate of 2000
//	held     1/s, for which requests wait
//	visits   5/m for each ip
//	guard    3/h of denials
//	watch    9/h of denials, in shadow
func start(t *testing.T, store headgate.Store, s Settings) *server {
	t.Helper()
	f := build(t, store, s)
	f.Server = httptest.NewServer(f.handler)
	t.Cleanup(f.Close)
	return f
}

// build makes a server that is asked without a network, so that it can run in a bubble of synctest.
func build(t *testing.T, store headgate.Store, s Settings) *server {
	t.Helper()
	f := &server{t: t, overrides: overrides.NewMemory()}
	if store == nil {
		store = headgate.NewMemory()
	}
	observe := func(e rules.Event) { f.events = append(f.events, e) }
	permits := concurrency.Store(concurrency.NewMemory())
	if _, fails := store.(broken); fails {
		permits = brokenPermits{}
	}
	engine := rules.New(store, permits, rules.Options{Overrides: f.overrides, Observe: observe})
	set, err := rules.NewSet([]rules.Rule{
		{Name: "login", Limits: limits(t, "5/m", "100/d fixed-window")},
		{Name: "tokens", Limits: limits(t, "1000/h")},
		{Name: "exports", Permits: 2},
		{Name: "seats", Permits: 2, Mode: rules.Shadow},
		{Name: "trial", Limits: limits(t, "1/m"), Mode: rules.Shadow},
		{Name: "unused", Limits: limits(t, "1/m"), Mode: rules.Off},
		{Name: "costly", Limits: limits(t, "100/h"), Cost: rules.Cost{Fixed: 5}},
		{Name: "model", Limits: limits(t, "1000/h"), Cost: rules.Cost{
			Tokens: &rules.TokenCost{Estimate: 2000, Input: 1},
		}},
		{Name: "guard", Limits: limits(t, "3/h"), Count: rules.Count{Denied: true}},
		{Name: "watch", Limits: limits(t, "9/h"), Count: rules.Count{Denied: true}, Mode: rules.Shadow},
		{Name: "held", Limits: limits(t, "1/s"), MaxWait: 2 * time.Second},
		{Name: "visits", Limits: limits(t, "5/m"), Key: []rules.KeyPart{{Source: "ip"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	engine.Use(set)
	redis, _ := store.(*redisstore.Store)
	f.handler = New(Options{
		Engine: engine, Permits: permits, Overrides: f.overrides, Redis: redis,
	}, s)
	f.handler.Listen(&net.TCPAddr{IP: net.IPv6loopback})
	if err := f.handler.ShareKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func limits(t *testing.T, texts ...string) []headgate.Limit {
	t.Helper()
	list := make([]headgate.Limit, len(texts))
	for i, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = l
	}
	return list
}

// response is an answer, read.
type response struct {
	*http.Response

	text string
}

// send sends a request with the given header fields, each as "Name: value".
func (f *server) send(method, path, body string, fields ...string) response {
	f.t.Helper()
	if f.Server == nil {
		r := httptest.NewRequestWithContext(f.t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
		addFields(r, fields)
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return response{w.Result(), strings.TrimSuffix(w.Body.String(), "\n")}
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	addFields(r, fields)
	got, err := f.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response{got, strings.TrimSuffix(string(text), "\n")}
}

func addFields(r *http.Request, fields []string) {
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Add(name, value)
	}
}

func (f *server) post(path, body string, fields ...string) response {
	f.t.Helper()
	return f.send(http.MethodPost, path, body, fields...)
}

// want fails unless r has the status and a body that contains all parts.
func (r response) want(t *testing.T, status int, parts ...string) {
	t.Helper()
	if r.StatusCode != status {
		t.Errorf("the status is %d, want %d: %s", r.StatusCode, status, r.text)
	}
	if !json.Valid([]byte(r.text)) {
		t.Errorf("the body is not JSON: %s", r.text)
	}
	for _, part := range parts {
		if !strings.Contains(r.text, part) {
			t.Errorf("the body is %s\nwant %s", r.text, part)
		}
	}
}

// id returns the id in the body.
func (r response) id(t *testing.T) string {
	t.Helper()
	var body struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(r.text), &body); err != nil || body.ID == "" {
		t.Fatalf("there is no id in %s: %v", r.text, err)
	}
	return body.ID
}
