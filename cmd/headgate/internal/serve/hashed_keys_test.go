package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// person is in all keys and notes of the test.
const (
	person = "person42"
	note   = person + " asked for it"
)

const hashedRules = `
api: {tokens: [` + consoleToken + `]}
rules:
  - {name: api, match: {path: /api}, key: header:X-Key, limits: 3/h, label_keys: true}
  - {name: work, match: {path: /work}, key: header:X-Key, permits: 1}
overrides: [{rule: api, key: "header:file-*", limits: 1/h}]
domains:
  - domain: d
    descriptors:
      - {key: k, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
`

// With a secret, nothing that Redis holds or carries has a clear key, while two instances decide,
// put overrides, act, announce resets, and exchange what the console shows. Without one, all of it
// has, so that the test would see a key that is left.
func TestRedisHasNoClearKey(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "0123456789abcdef"} {
		t.Run(secret, func(t *testing.T) {
			t.Parallel()
			useKeys(t, secret)
		})
	}
}

// useKeys looks for clear keys in all that two instances with a secret leave.
func useKeys(t *testing.T, secret string) {
	t.Helper()
	redis := redistest.Start(t)
	traffic := monitor(t, redis.Addr)
	file := write(t, filepath.Join(t.TempDir(), "rules.yaml"), hashedRules)
	var log buffer
	o := Options{
		Files: []string{file}, Store: "redis://" + redis.Addr + redistest.Patient, KeySecret: secret,
		Log: slog.New(slog.NewTextHandler(&log, nil)), LogDecisions: 1,
	}
	a, b := serveHTTP(t, o), serveHTTP(t, o)
	useAll(t, a, b, redis.Addr)
	held := map[string]string{}
	isClear := func(part string) bool {
		for name, text := range held {
			if strings.Contains(name, part) && strings.Contains(name+text, person) {
				return true
			}
		}
		return false
	}
	inClear, hashed := []string{"{@overrides}:", "acts", "now:", "}:api", "}:@permits"}, "hash:"
	eventually.True(t, "every kind of key", func() bool {
		a.keyed(person) // a snapshot has the keys that are denied, and lives for seconds
		maps.Copy(held, contents(t, redis.Addr))
		isHashed := func(part string) bool { return !isClear(part) }
		return len(held) >= 12 && (secret != "" || !slices.ContainsFunc(inClear, isHashed))
	})
	for _, part := range append(inClear, hashed) {
		if found := isClear(part); found != (secret == "" && part != hashed) {
			t.Errorf("%q is clear: %v", part, found)
		}
	}
	if secret != "" {
		nothingIsClear(t, held)
	}
	_, metrics := a.get("/metrics")
	logged := strings.ReplaceAll(log.String(), note, "") // which is logged as it was written
	for text, key := range map[string]string{
		traffic.String(): person, metrics: `key="header:` + person, logged: person,
	} {
		if found := strings.Contains(text, key); found != (secret == "") {
			t.Errorf("%v in %.300q", found, text)
		}
	}
	if !strings.Contains(logged, "msg=decision") || !strings.Contains(logged, "act=ban") {
		t.Errorf("not logged: %.300q", logged)
	}
	o.KeySecret = "another secret of 26 bytes"
	startsEmpty(t, serveHTTP(t, o), a)
}

// nothingIsClear checks that what Redis holds is neither JSON nor has a key. Sealed bytes may begin
// with any byte.
func nothingIsClear(t *testing.T, held map[string]string) {
	t.Helper()
	for name, text := range held {
		for one := range strings.SplitSeq(text, "\n") {
			isObject := strings.HasPrefix(strings.TrimPrefix(one, "["), "{")
			if isObject && json.Valid([]byte(one)) || strings.Contains(name+one, person) {
				t.Errorf("%q: %.300q", name, one)
			}
		}
	}
}

// startsEmpty checks that a server with a new secret has nothing of what useAll has left to old.
func startsEmpty(t *testing.T, s, old *running) {
	t.Helper()
	peek := `{"rule":"api","key":"header:` + person + `"}`
	for which, full := range map[*running]bool{s: true, old: false} {
		_, text := which.do("POST", "/v1/peek", peek)
		if strings.Contains(text, `"remaining":3`) != full {
			t.Errorf("the new secret %v: %s", full, text)
		}
	}
	for path, kept := range map[string]string{
		"/v1/overrides": `"source":"put"`, "/console/api/acts": `"act":"ban"`,
	} {
		if _, text := s.get(path); strings.Contains(text, kept) {
			t.Errorf("%s with a new secret: %s", path, text)
		}
		if _, text := old.get(path); !strings.Contains(text, kept) {
			t.Errorf("%s with the old secret: %s", path, text)
		}
	}
	if status := s.keyed(person + "-bad"); status != http.StatusOK {
		t.Errorf("a ban of the old secret is in force: %d", status)
	}
	const permit = `{"rule":"work","key":"header:` + person + `","ttl":60}`
	if _, text := s.do("POST", "/v1/acquire", permit); !strings.Contains(text, `"allowed":true`) {
		t.Errorf("a permit of the old secret is in use: %s", text)
	}
}

// useAll uses every kind of key on two instances that share a Redis.
func useAll(t *testing.T, a, b *running, addr string) {
	t.Helper()
	viewer := b.stream()
	must := func(s *running, want int, method, path, body string) {
		t.Helper()
		if status, text := s.do(method, path, body); status != want {
			t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, status, want, text)
		}
	}
	key := "header:" + person
	eventually.True(t, "the denied keys reach the console of the other instance", func() bool {
		a.keyed(person)
		a.ask(`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"` + person + `"}]}]}`)
		return viewer.shows(person)
	})
	must(a, 200, "POST", "/v1/acquire", `{"rule":"work","key":"`+key+`","ttl":60}`)
	must(a, 200, "PUT", "/v1/overrides", `{"rule":"api","key":"`+key+`-*","limits":["1/h"]}`)
	must(a, 200, "PUT", "/v1/overrides", `{"rule":"api","key":"`+key+`-gone","ban":true}`)
	must(a, 200, "POST", "/console/api/acts",
		`{"act":"ban","rule":"api","key":"`+key+`-bad","note":"`+note+`"}`)
	eventually.True(t, "a ban of the other instance", func() bool { return b.keyed(person+"-bad") == 429 })
	eventually.True(t, "a pattern of the other instance", func() bool { return b.keyed(person+"-x") == 429 })
	must(b, 200, "DELETE", "/v1/overrides/api/"+key+"-gone", "")
	eventually.True(t, "the end of a ban", func() bool { return a.keyed(person+"-gone") == 200 })
	eventually.True(t, "a denial", func() bool { return a.keyed(person) == 429 })
	must(b, 204, "DELETE", "/v1/keys/api/"+key, "")
	eventually.True(t, "a reset of the other instance", func() bool { return a.keyed(person) == 200 })
	eventually.True(t, "its own list of actions", func() bool {
		_, text := b.get("/console/api/acts")
		return strings.Contains(text, person+" asked")
	})
	if s := a.stores; s.box != nil {
		hash := s.redis.StoredKey(key)
		_, byName := a.get("/console/api/key?key=" + url.QueryEscape(key))
		_, byHash := a.get("/console/api/key?key=" + url.QueryEscape(hash))
		if used := `"remaining":2`; !strings.Contains(byName, used) || !strings.Contains(byHash, used) {
			t.Errorf("the console shows %s and by its hash %s", byName, byHash)
		}
	}
	eventually.True(t, "a history", func() bool {
		for name := range contents(t, addr) {
			if strings.Contains(name, "history:") {
				return true
			}
		}
		return false
	})
}

// keyed sends a request with a key, and returns the status.
func (r *running) keyed(key string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+"/auth/api", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// shows reads one more state, and reports whether it has a text.
func (s *stream) shows(text string) bool {
	found := false
	s.until("a state", func(shown) bool {
		found = strings.Contains(s.lines.Text(), text)
		return true
	})
	return found
}

// monitor records the commands that Redis runs, also those of scripts.
func monitor(t *testing.T, addr string) *buffer {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	seen := new(buffer)
	go func() {
		chunk := make([]byte, 1<<16)
		for {
			n, err := conn.Read(chunk)
			_, _ = seen.Write(chunk[:n])
			if err != nil {
				return
			}
		}
	}()
	return seen
}

// contents returns all that a Redis holds, as texts by the names of keys.
func contents(t *testing.T, addr string) map[string]string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ctx, all := context.Background(), map[string]string{}
	names, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var list []string
		switch client.Type(ctx, name).Val() {
		case "string":
			list = []string{client.Get(ctx, name).Val()}
		case "hash":
			for field, value := range client.HGetAll(ctx, name).Val() {
				list = append(list, field, value)
			}
		case "list":
			list = client.LRange(ctx, name, 0, -1).Val()
		case "zset":
			list = client.ZRange(ctx, name, 0, -1).Val()
		case "none": // it has expired
		default:
			t.Fatalf("%s: a type that the test does not read", name)
		}
		all[name] = strings.Join(list, "\n")
	}
	return all
}

// A secret that is too short is an error, and a change of it takes effect after a restart.
func TestKeySecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := "rules: [{name: r, limits: 1/h}]\n"
	o := Options{Files: []string{write(t, file, rules)}, Store: "redis://127.0.0.1:1", KeySecret: "short"}
	if _, err := newServer(o); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("got %v", err)
	}
	var log buffer
	s := newTestServer(t, "store: redis://127.0.0.1:1\nkey_secret: 0123456789abcdef\n"+rules, &log)
	if key := s.stores.redis.StoredKey("k"); !strings.HasPrefix(key, "hash:") || len(key) != 27 {
		t.Errorf("the secret of the file: the key is %q", key)
	}
	write(t, s.o.Files[0], "store: redis://127.0.0.1:1\nkey_secret: 0123456789abcdeX\n"+rules)
	if err := s.watcher.Reload(); err != nil || !strings.Contains(log.String(), "field=key_secret") {
		t.Errorf("%v, %s", err, &log)
	}
	second, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	both := stores{redis: s.stores.redis, perSecond: second}
	if err := both.hashKeys("0123456789abcdef"); err != nil || !redisstore.IsHash(second.StoredKey("k")) {
		t.Errorf("the Redis of limits by second: %v", err)
	}
	var same redisstore.Store
	if key := same.StoredKey("k"); key != "k" {
		t.Errorf("without a secret, the key is %q", key)
	}
}
