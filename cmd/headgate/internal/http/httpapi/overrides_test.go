package httpapi

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// wantEmpty fails unless r is a success without a body.
func (r response) wantEmpty(t *testing.T) {
	t.Helper()
	if r.StatusCode != http.StatusNoContent || r.text != "" {
		t.Errorf("the answer is %d %s, want 204 without a body", r.StatusCode, r.text)
	}
}

func TestOverrides(t *testing.T) {
	f := start(t, nil, Settings{Tokens: []string{"a", "b"}})
	const auth = "Authorization: Bearer b"
	f.overrides.UseFile([]rules.Override{{Rule: "tokens", Key: "header:bad", Ban: true}})
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	put := `{"rule":"login","key":"ip:192.0.2.*","limits":["50/m","1000/d fixed-window"],"until":"` + until + `","note":"office"}`
	const want = `{"rule":"login","key":"ip:192.0.2.*","limits":["50/m","1000/d fixed-window"],"until":"`
	for range 2 { // it is idempotent
		f.send("PUT", "/v1/overrides", put, auth, "X-Headgate-By: Ann").want(t, 200, want+until+`","note":"office","by":"Ann"}`)
	}
	f.post("/v1/take", `{"rule":"login","key":"ip:192.0.2.9","cost":40}`, auth).want(t, 200, `"allowed":true`, `"limit":"50/m"`)
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"ip:192.0.2.7","ban":true,"for":90}`, auth).
		want(t, 200, `"ban":true,"until":"`, `"by":"token 3e23"`)
	f.send("GET", "/v1/overrides", "", auth).want(t, 200,
		`{"overrides":[{"rule":"tokens","key":"header:bad","ban":true,"until":null,"source":"file"},{"rule":"login","key":"ip:192.0.2.7","ban":true`,
		`,"by":"token 3e23","source":"put"},`+want)
	f.send("DELETE", "/v1/overrides/login/ip:192.0.2.%2A", "", auth).want(t, 200, `{"deleted":true}`)
	f.send("DELETE", "/v1/overrides/login/ip:192.0.2.*", "", auth).want(t, 200, `{"deleted":false}`)
	f.send("DELETE", "/v1/overrides/tokens/header:bad", "", auth).want(t, 200, `{"deleted":false}`) // of the file
	f.post("/v1/take", `{"rule":"login","key":"ip:192.0.2.9","cost":40}`, auth).want(t, 200, `"allowed":false`, `"limit":"5/m"`)
}

// TestOverrideKeepsUse: a raise keeps the used fraction, and a reset gives a full budget.
func TestOverrideKeepsUse(t *testing.T) { synctest.Test(t, testOverrideKeepsUse) }

func testOverrideKeepsUse(t *testing.T) {
	f := build(t, nil, Settings{})
	f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`).want(t, 200, `"remaining":0`)
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"k","limits":["500/m"]}`).want(t, 200)
	got := f.post("/v1/take", `{"rule":"login","key":"k","cost":100}`)
	got.want(t, 200, `"allowed":false`, `"capacity":500`)
	f.send("DELETE", "/v1/keys/login/k", "").wantEmpty(t)
	f.post("/v1/take", `{"rule":"login","key":"k","cost":100}`).want(t, 200, `"allowed":true`, `"remaining":400`)
}

// TestResetBehindOverride: a key that is reset is also full once its override has gone.
func TestResetBehindOverride(t *testing.T) {
	f := start(t, nil, Settings{})
	f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`).want(t, 200, `"remaining":0`)
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"k","limits":["9/h fixed-window"]}`).want(t, 200)
	f.send("DELETE", "/v1/keys/login/k", "").wantEmpty(t)
	f.send("DELETE", "/v1/overrides/login/k", "").want(t, 200, `{"deleted":true}`)
	f.post("/v1/peek", `{"rule":"login","key":"k"}`).want(t, 200, `"remaining":5`, `"remaining":100`)
}

func TestOverridesInvalid(t *testing.T) {
	f := start(t, nil, Settings{})
	for body, want := range map[string]string{
		`{"key":"k","ban":true}`:                                                       "rule is missing",
		`{"rule":"login","ban":true}`:                                                  "key is missing",
		`{"rule":"login","key":"k"}`:                                                   "limits is missing",
		`{"rule":"login","key":"k","ban":true,"limits":["5/m"]}`:                       "either limits or a ban",
		`{"rule":"login","key":"k","limits":[]}`:                                       "limits is []; want a list of limits",
		`{"rule":"login","key":"k","limits":["5/x"]}`:                                  `"field":"limits[0]"`,
		`{"rule":"login","key":"k","limits":["a=5/m"]}`:                                "a limit without a name",
		`{"rule":"login","key":"k","limits":["0/m"]}`:                                  `count is 0; want at least 1`,
		`{"rule":"login","key":"k","ban":true,"until":"2001-01-01T00:00:00Z"}`:         "until is 2001",
		`{"rule":"login","key":"k","ban":true,"until":"tomorrow"}`:                     "want a time such as 2027",
		`{"rule":"login","key":"k","ban":true,"for":1,"until":"2099-01-01T00:00:00Z"}`: "one of for and until",
		`{"rule":"login","key":"k","ban":true,"for":-1}`:                               "for is -1; want a number of seconds from 1 to 31622400",
		`{"rule":"login","key":"k","ban":true,"for":0}`:                                "for is 0; want a number of seconds from 1",
		`{"rule":"login","key":"k","ban":true,"for":1e-7}`:                             "for is 1e-7; want a number of seconds from 1",
		`{"rule":"login","key":"k","ban":true,"for":0.999999}`:                         "want a number of seconds from 1",
		`{"rule":"login","key":"k","ban":"yes"}`:                                       "want true or false",
	} {
		f.send("PUT", "/v1/overrides", body).want(t, 400, want)
	}
	f.send("PUT", "/v1/overrides", `{"rule":"nobody","key":"k","ban":true}`).want(t, 404, "nobody")
}

// TestModesAreListed: beside the overrides, because they too differ from the file.
func TestModesAreListed(t *testing.T) {
	f := start(t, nil, Settings{})
	at := time.Unix(1_800_000_000, 0)
	for _, m := range []overrides.Mode{
		{Rule: "trial", Mode: rules.Enforce, At: at},
		{Rule: "login", Mode: rules.Shadow, At: at, Until: time.Unix(4e9, 0), Note: "too tight", By: "Ann"},
	} {
		if err := f.overrides.Swap(t.Context(), overrides.ModeName(m.Rule), "", overrides.EncodeMode(m)); err != nil {
			t.Fatal(err)
		}
	}
	f.send("GET", "/v1/overrides", "").want(t, 200, `{"overrides":[],"modes":[`+
		`{"rule":"login","mode":"shadow","at":"2027-01-15T08:00:00Z","until":"2096-10-02T07:06:40Z","note":"too tight","by":"Ann"},`+
		`{"rule":"trial","mode":"enforce","at":"2027-01-15T08:00:00Z","until":null}]}`)
}

// TestOverrideKeys: an override of a rule with a key is for keys that the rule makes, because a ban
// that matches no key is worse than none.
func TestOverrideKeys(t *testing.T) {
	f := start(t, nil, Settings{})
	for key, want := range map[string]string{
		"ip:10.1.2.0/24":     `or a rule with match: {ip: 10.1.2.0/24}`,
		"ip:2001:db8::1":     `want \"ip:2001:db8::/64\"`,
		"10.1.1.1":           `want one such as \"ip:...\"`,
		"IP:10.1.1.2":        `want one such as \"ip:...\"`,
		"ip:::ffff:10.1.4.1": `want \"ip:10.1.4.1\"`,
		"user:42":            `key: \"user:42\" is not a key of rule \"visits\"; want one such as \"ip:...\"`,
		"":                   `want one such as \"ip:...\"`,
	} {
		f.send("PUT", "/v1/overrides", `{"rule":"visits","key":"`+key+`","ban":true}`).
			want(t, 400, `"field":"key"`, want)
	}
	f.send("GET", "/v1/overrides", "").want(t, 200, `{"overrides":[],"modes":[]}`)
	for _, key := range []string{"ip:10.1.1.2", "ip:10.1.2.*", "ip:2001:db8::/64", "*"} {
		f.send("PUT", "/v1/overrides", `{"rule":"visits","key":"`+key+`","ban":true}`).want(t, 200)
	}
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"user:42","ban":true}`).want(t, 200)
}

func TestResetKey(t *testing.T) {
	f := start(t, nil, Settings{})
	for path, key := range map[string]string{
		"path:/a/b": "path:/a/b", "path:%2Fa%2F%2Fb": "path:/a//b", "%25%3F": "%?", "": "",
	} {
		body := `{"rule":"login","key":"` + key + `","cost":5}`
		f.post("/v1/take", body).want(t, 200, `"allowed":true`)
		f.send("DELETE", "/v1/keys/login/"+path, "").wantEmpty(t)
		f.post("/v1/take", body).want(t, 200, `"allowed":true`)
	}
	f.send("DELETE", "/v1/keys/nobody/k", "").want(t, 404, "nobody")
	f.send("DELETE", "/v1/keys/visits/", "").want(t, 400, "key is missing")
	f.send("DELETE", "/v1/keys/visits/ip:192.0.2.1", "").wantEmpty(t)
}

// A key that its rule does not make would count apart from the requests that were meant.
func TestKeysThatAreNotMade(t *testing.T) {
	f := start(t, nil, Settings{})
	for _, key := range []string{"made-by-a-program", "ip:*", "ip:2001:db8::1", "all", "192.0.2.1"} {
		body := `{"rule": "visits", "key": "` + key + `"}`
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/v1/take", body}, {"POST", "/v1/peek", body}, {"POST", "/v1/reserve", body},
			{"POST", "/v1/refund", body}, {"POST", "/v1/take-all", `{"requests": [` + body + `]}`},
			{"DELETE", "/v1/keys/visits/" + key, ""},
		} {
			f.send(c.method, c.path, c.body).want(t, 400, `key: \"`+key+`\" is not a key of rule`,
				`, or any_key: true in the rule"`)
		}
	}
}

// TestQueryAfterAKey: a ? in a key that is not encoded would reset another key, or delete another
// override.
func TestQueryAfterAKey(t *testing.T) {
	f := start(t, nil, Settings{})
	f.post("/v1/take", `{"rule":"login","key":"a","cost":5}`).want(t, 200, `"allowed":true`)
	f.send("PUT", "/v1/overrides", `{"rule":"visits","key":"ip:192.0.2.1","ban":true}`).want(t, 200)
	for _, path := range []string{
		"/v1/keys/login/a?b=c", "/v1/keys/login/a?", "/v1/overrides/visits/ip:192.0.2.1?q=1",
	} {
		f.send("DELETE", path, "").want(t, 400, `"field":"key"`, "write %3F")
	}
	f.post("/v1/take", `{"rule":"login","key":"a"}`).want(t, 200, `"allowed":false`)
	f.post("/v1/take", `{"rule":"visits","key":"ip:192.0.2.1"}`).want(t, 200, `"limit":"ban"`)
	f.send("DELETE", "/v1/keys/login/a%3Fb=c", "").wantEmpty(t)
}

// resetOnce is a store that fails after one reset.
type resetOnce struct {
	headgate.Store

	done bool
}

func (s *resetOnce) Reset(ctx context.Context, key string, l headgate.Limit) error {
	if s.done {
		return errBroken
	}
	s.done = true
	return s.Store.Reset(ctx, key, l)
}

// TestPartialReset: instances forget the denials of a key of which only one limit was reset.
func TestPartialReset(t *testing.T) {
	f := start(t, &resetOnce{Store: headgate.NewMemory()}, Settings{})
	var heard []overrides.Reset
	f.overrides.Follow(func(map[string]rules.Mode) {},
		func(r overrides.Reset) { heard = append(heard, r) })
	f.send("DELETE", "/v1/keys/login/k", "").want(t, 503, "the store is unavailable")
	if want := []overrides.Reset{{Rule: "login", Key: "k"}}; !slices.Equal(heard, want) {
		t.Errorf("the resets that were announced are %v, want %v", heard, want)
	}
}

// TestOverrideOfAll: a rule without key counts all requests under one key, which may be empty in the
// request.
func TestOverrideOfAll(t *testing.T) { synctest.Test(t, testOverrideOfAll) }

func testOverrideOfAll(t *testing.T) {
	f := build(t, nil, Settings{})
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"","ban":true,"for":1}`).
		want(t, 200, `"key":"all","ban":true`)
	f.post("/v1/take", `{"rule":"login"}`).want(t, 200, `"limit":"ban"`)
	f.send("DELETE", "/v1/overrides/login/", "").want(t, 200, `{"deleted":true}`)
	f.post("/v1/take", `{"rule":"login"}`).want(t, 200, `"allowed":true`)
}

// TestChangesWithoutAnAnswer: what may have been done, and what was done, is said.
func TestChangesWithoutAnAnswer(t *testing.T) {
	redis := redistest.Start(t)
	store, err := redisstore.Open("redis://" + redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := start(t, nil, Settings{})
	f.handler.options.Overrides = overrides.NewRedis(store, nil, nil)
	redis.Stop()
	const maybe = "the override may or may not have been changed"
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"k","ban":true}`).want(t, 503, maybe)
	f.send("DELETE", "/v1/overrides/login/k", "").want(t, 503, maybe)
	f.send("DELETE", "/v1/keys/login/k", "").want(t, 503, "the key was reset, but other instances")
}
