package serve

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

const consoleToken = "0123456789abcdef"

// instanceOf makes a server on a Redis, with a console that may act.
func instanceOf(t *testing.T, redis *redistest.Server, log *buffer) *server {
	t.Helper()
	s := newTestServer(t, "store: redis://"+redis.Addr+redistest.Patient+"\napi: {tokens: ["+consoleToken+"]}\n"+
		"rules: [{name: login, key: ip, limits: 2/h}]\n", log)
	s.api.Listen(&net.TCPAddr{IP: net.IPv6loopback})
	s.follow(t)
	return s
}

// follow lets s follow other instances until the test ends, as while it serves.
func (s *server) follow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { s.keepRunning(ctx, "overrides", s.followOthers) })
	t.Cleanup(func() { cancel(); following.Wait() })
}

// send sends a request with the token, and reads the answer into v.
func (s *server) send(t *testing.T, method, path, body string, v any) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+consoleToken)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.http().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s %s: %d: %s", method, path, body, w.Code, w.Body)
	}
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatal(err, w.Body)
		}
	}
	return w.Body.String()
}

// remove sends a DELETE that is answered without a body.
func (s *server) remove(t *testing.T, path string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1"+path, nil)
	r.Header.Set("Authorization", "Bearer "+consoleToken)
	w := httptest.NewRecorder()
	if s.http().ServeHTTP(w, r); w.Code != http.StatusNoContent {
		t.Fatalf("DELETE %s: %d: %s", path, w.Code, w.Body)
	}
}

// take decides a request of an address, and returns its status.
func (s *server) take(t *testing.T) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth", nil)
	r.Header.Set("X-Forwarded-Uri", "/")
	r.RemoteAddr = "192.0.2.1:9"
	w := httptest.NewRecorder()
	s.http().ServeHTTP(w, r)
	return w.Code
}

// until waits until a request has the status.
func (s *server) until(t *testing.T, status int) {
	t.Helper()
	eventually.Equal(t, "the status of a request", func() int { return s.take(t) }, status)
}

// TestActsReachAllInstances: a reset, though the other has cached the denial; a ban, a switch, and
// their undo.
func TestActsReachAllInstances(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var logA, logB buffer
	a, b := instanceOf(t, redis, &logA), instanceOf(t, redis, &logB)
	a.until(t, 429)
	b.until(t, 429) // and it is cached
	type act struct{ ID string }
	do := func(s *server, body string) (done act) {
		t.Helper()
		s.send(t, "POST", "/console/api/acts", body, &done)
		return done
	}
	undo := func(s *server, done act) {
		t.Helper()
		s.send(t, "POST", "/console/api/acts/"+done.ID+"/undo", "{}", nil)
	}
	do(a, `{"act":"reset","rule":"login","key":"ip:192.0.2.1","by":"Ann"}`)
	b.until(t, 200)
	b.until(t, 429)
	a.remove(t, "/v1/keys/login/ip:192.0.2.1")
	b.until(t, 200)
	b.until(t, 429)

	shadow := do(b, `{"act":"mode","rule":"login","mode":"shadow","note":"too tight"}`)
	a.until(t, 200)
	if text := a.send(t, "GET", "/metrics", "", nil); !strings.Contains(text, `headgate_rule_mode_switched{rule="login"} 1`) {
		t.Error("the metrics do not have the switch")
	}
	if text := a.send(t, "GET", "/v1/overrides", "", nil); !strings.Contains(text, `"modes":[{"rule":"login","mode":"shadow"`) {
		t.Errorf("the overrides do not have the switch: %s", text)
	}
	if err := a.watcher.Reload(); err != nil { // the switch outlives a reload
		t.Fatal(err)
	}
	a.until(t, 200)

	c := instanceOf(t, redis, new(buffer)) // and a restart
	c.until(t, 200)
	var list struct {
		Acts []struct{ Act, Note string }
	}
	c.send(t, "GET", "/console/api/acts", "", &list)
	if len(list.Acts) != 2 || list.Acts[0].Note != "too tight" || list.Acts[1].Act != "reset" {
		t.Errorf("after a restart, the acts are %+v", list)
	}
	undo(c, shadow)
	a.until(t, 429)
	b.until(t, 429)
	if text := a.send(t, "GET", "/metrics", "", nil); !strings.Contains(text, `headgate_rule_mode_switched{rule="login"} 0`) {
		t.Error("the metrics show a switch that was undone")
	}

	raise := do(a, `{"act":"raise","rule":"login","key":"ip:192.0.2.1","limits":["1000/h"]}`)
	b.until(t, 200)
	ban := do(b, `{"act":"ban","rule":"login","key":"ip:192.0.2.1","for_s":600}`)
	a.until(t, 429)
	undo(a, ban)
	b.until(t, 200)
	undo(b, raise)
	a.until(t, 429)
	if text := logA.String(); !strings.Contains(text, "operator action in the console") || !strings.Contains(text, "by=\"Ann (token ") {
		t.Errorf("the log is %s", text)
	}
}

// TestResetBeforeTheStart: a reset that another instance has made just before needs no part that is
// made later.
func TestResetBeforeTheStart(t *testing.T) {
	redis := redistest.Start(t)
	store, err := redisstore.Open("redis://" + redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table := overrides.NewRedis(store, nil, nil)
	reset := overrides.Reset{Rule: "domain/key", Key: "k"} // of Envoy's dialect
	if err := table.Announce(t.Context(), reset); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		instanceOf(t, redis, new(buffer)).close()
	}
}
