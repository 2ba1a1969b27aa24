package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/fallback"
)

func TestTake(t *testing.T) { synctest.Test(t, testTake) }

func testTake(t *testing.T) {
	f := build(t, nil, Settings{})
	const k = `{"rule":"login","key":"ip:192.0.2.1"}`
	f.post("/v1/take", k).want(t, 200,
		`{"allowed":true,"rule":"login","limit":"5/m","capacity":5,"remaining":4,"retry_after":0,"reset_after":12}`)
	f.post("/v1/take", `{"rule":"login","key":"ip:192.0.2.1","cost":4}`).want(t, 200,
		`"allowed":true`, `"remaining":0`)
	f.post("/v1/take", k).want(t, 200, `"allowed":false`, `"limit":"5/m"`, `"retry_after":1`)
	f.post("/v1/peek", k).want(t, 200, `"allowed":false`,
		`"limits":[{"allowed":false,"limit":"5/m"`, `{"allowed":true,"limit":"100/d fixed-window","capacity":100,"remaining":95`)
	f.post("/v1/refund", `{"rule":"login","key":"ip:192.0.2.1","cost":5}`).want(t, 200, `"remaining":5`)
	f.post("/v1/peek", k).want(t, 200, `"allowed":true`, `"remaining":5`, `"remaining":100`)
	f.post("/v1/take", `{"rule":"tokens","key":"","cost":1001}`).want(t, 200,
		`"allowed":false`, `"remaining":1000,"reset_after":0}`)
	f.post("/v1/take", `{"rule":"unused","key":"k"}`).want(t, 200,
		`{"allowed":true,"rule":"unused","limit":"unlimited","capacity":null,"remaining":null,"retry_after":0,"reset_after":0}`)
}

func TestMaxWait(t *testing.T) { synctest.Test(t, testMaxWait) }

func testMaxWait(t *testing.T) {
	f := build(t, nil, Settings{})
	f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`).want(t, 200, `"allowed":true`)
	f.post("/v1/take", `{"rule":"login","key":"k","max_wait":0.5}`).want(t, 200,
		`"allowed":false`, `"retry_after":1`)
	got := f.post("/v1/take", `{"rule":"login","key":"k","max_wait":60}`, "Prefer: status")
	got.want(t, 200, `"allowed":true`, `"retry_after":0`, `"wait":1`)
	if retry := got.Header["Retry-After"]; retry != nil {
		t.Errorf("a grant that was booked ahead has Retry-After %v", retry)
	}
}

func TestPreferStatus(t *testing.T) { synctest.Test(t, testPreferStatus) }

func testPreferStatus(t *testing.T) {
	f := build(t, nil, Settings{})
	got := f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`, "Prefer: wait=1, Status; x=y")
	got.want(t, 200, `"allowed":true`)
	if got.Header.Get("Ratelimit") == "" || got.Header.Get("Preference-Applied") != "status" {
		t.Errorf("the header is %v", got.Header)
	}
	got = f.post("/v1/take", `{"rule":"login","key":"k"}`, "Prefer: status")
	got.want(t, 429, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"`,
		`"status":429`, `"violated-policies":["login"]`, `"allowed":false`, `"retry_after":1`)
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Retry-After": "12",
		"RateLimit": `"login";r=0;t=12`, "X-RateLimit-Remaining": "0",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	got = f.post("/v1/take", `{"rule":"login","key":"k"}`)
	if got.StatusCode != http.StatusOK || got.Header.Get("Ratelimit") != "" {
		t.Errorf("without Prefer, the answer is %d %v", got.StatusCode, got.Header)
	}
}

func TestTakeAll(t *testing.T) { synctest.Test(t, testTakeAll) }

func testTakeAll(t *testing.T) {
	f := build(t, nil, Settings{AllowInlineLimits: true})
	const two = `{"requests":[{"rule":"login","key":"k","cost":3},{"rule":"tokens","key":"k","cost":600}]}`
	f.post("/v1/take-all", two).want(t, 200, `{"allowed":true,"retry_after":0,"results":[{"allowed":true,"rule":"login"`,
		`"remaining":2`, `"remaining":400`)
	f.post("/v1/take-all", two).want(t, 200, `{"allowed":false,"retry_after":7`, `"remaining":2`, `"remaining":400`)
	f.post("/v1/take-all", `{"requests":[{"rule":"login","key":"k","cost":2},{"limit":"1/s","key":"k"}]}`).
		want(t, 200, `"allowed":true`, `"limit":"1/s"`)
	for body, want := range map[string]string{
		`{"requests":[{"rule":"login","key":"k"},{"rule":"login","key":"k","cost":2}]}`: `requests[1].key is \"k\", with the same limit as in requests[0]`,
		`{"requests":[{"limit":"60/m","key":"k"},{"limit":"60/1m","key":"k"}]}`:         `the same limit as in requests[0]`,
		`{"requests":[{"rule":"login","key":"k"},{"rule":"nobody","key":"k"}]}`:         `requests[1].rule is \"nobody\"`,
		`{"requests":[{"rule":"login","key":"k","cost":0}]}`:                            `requests[0].cost is 0; want`,
		`{"requests":[]}`: `requests is []; want a list of 1 to 100`,
		`{}`:              `requests is missing`,
		`{"requests":[{"rule":"login","max_wait":1}]}`:        `requests[0].max_wait is an unknown field; want rule, limit, key, cost, headroom`,
		`{"requests":[` + strings.Repeat(`{},`, 100) + `{}]}`: `want a list of 1 to 100`,
	} {
		got := f.post("/v1/take-all", body)
		if got.StatusCode != http.StatusBadRequest && got.StatusCode != http.StatusNotFound || !strings.Contains(got.text, want) {
			t.Errorf("%s\nis answered %d %s\nwant %s", body, got.StatusCode, got.text, want)
		}
	}
}

// TestShadow: a rule in shadow denies nothing, and is charged only if the others grant.
func TestShadow(t *testing.T) { synctest.Test(t, testShadow) }

func testShadow(t *testing.T) {
	f := build(t, nil, Settings{})
	const k = `{"rule":"trial","key":"k"}`
	f.post("/v1/take", k).want(t, 200, `"allowed":true`, `"remaining":0`, `"shadow_denied":false`)
	f.post("/v1/take", k, "Prefer: status").want(t, 200, `"allowed":true`, `"retry_after":`, `"shadow_denied":true`)
	f.post("/v1/take-all", `{"requests":[{"rule":"trial","key":"x"},{"rule":"login","key":"x","cost":6}]}`).
		want(t, 200, `{"allowed":false`, `"shadow_denied":false`)
	f.post("/v1/peek", `{"rule":"trial","key":"x"}`).want(t, 200, `"remaining":1`)
	f.post("/v1/take-all", `{"requests":[{"rule":"trial","key":"k"},{"rule":"login","key":"x"}]}`).
		want(t, 200, `{"allowed":true`, `"shadow_denied":true`)
	f.post("/v1/take-all", `{"requests":[{"rule":"trial","key":"k"},{"rule":"login","key":"x","cost":6}]}`, "Prefer: status").
		want(t, 429, `"detail":"Exceeded: login."`, `"violated-policies":["login"]`, `"shadow_denied":true`)
}

func TestBan(t *testing.T) { synctest.Test(t, testBan) }

func testBan(t *testing.T) {
	f := build(t, nil, Settings{})
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"ip:*","ban":true,"for":3600}`).want(t, 200)
	f.post("/v1/take", `{"rule":"login","key":"ip:a"}`).want(t, 200,
		`{"allowed":false,"rule":"login","limit":"ban","capacity":0,"remaining":0,"retry_after":3`)
	got := f.post("/v1/take", `{"rule":"login","key":"ip:a"}`, "Prefer: status")
	got.want(t, 429, `"detail":"The key is banned."`)
	if got.Header.Get("Retry-After") != "3600" {
		t.Errorf("Retry-After is %q", got.Header.Get("Retry-After"))
	}
	f.post("/v1/take-all", `{"requests":[{"rule":"tokens","key":"k"},{"rule":"login","key":"ip:a"}]}`).
		want(t, 200, `{"allowed":false`, `{"allowed":true,"rule":"tokens","limit":"1000/h","capacity":1000,"remaining":1000`)
	f.post("/v1/refund", `{"rule":"login","key":"ip:a"}`).want(t, 200, `"allowed":true`, `"limit":"5/m"`)
	f.send("PUT", "/v1/overrides", `{"rule":"login","key":"ip:*","ban":true}`).want(t, 200)
	got = f.post("/v1/take", `{"rule":"login","key":"ip:a"}`, "Prefer: status")
	got.want(t, 429, `"limit":"ban","capacity":0,"remaining":0}`)
	if got.Header.Get("Retry-After") != "" {
		t.Errorf("Retry-After is %q for ever", got.Header.Get("Retry-After"))
	}
}

// broken is a store that fails.
type broken struct{ headgate.Store }

var errBroken = errors.New("broken")

func (broken) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errBroken
}

func (broken) TakeAll(context.Context, []headgate.Request, []headgate.Decision) error {
	return errBroken
}

func (broken) Reset(context.Context, string, headgate.Limit) error { return errBroken }

// brokenPermits is a store of permits that fails.
type brokenPermits struct{ concurrency.Store }

func (brokenPermits) AcquirePermit(
	context.Context, concurrency.Request,
) (concurrency.Decision, error) {
	return concurrency.Decision{}, errBroken
}

func (brokenPermits) RenewPermit(context.Context, concurrency.Request) (bool, error) {
	return false, errBroken
}

func (brokenPermits) ReleasePermit(context.Context, concurrency.Request) (bool, error) {
	return false, errBroken
}

// A problem says what may have happened.
func TestStoreFails(t *testing.T) {
	f := start(t, broken{}, Settings{})
	const charged = "the request was not decided, but its cost may have been charged"
	reservation := f.handler.ids.seal(reservationID, reservation{Rule: "tokens", Key: "k", Cost: 2})
	held := f.handler.ids.seal(permitID, permit{Rule: "exports", Key: "k", ID: strings.Repeat("1", 32)})
	for _, c := range []struct{ path, body, says string }{
		{"/v1/take", `{"rule":"login","key":"k"}`, charged},
		{"/v1/take-all", `{"requests":[{"rule":"login","key":"k"}]}`, charged},
		{"/v1/reserve", `{"rule":"login","key":"k"}`, charged},
		{"/v1/peek", `{"rule":"tokens","key":"k"}`, "the limits cannot be checked"},
		{"/v1/refund", `{"rule":"login","key":"k"}`, "the cost may or may not have been refunded"},
		{"/v1/commit", `{"id":"` + reservation + `","cost":1}`, "may or may not have been settled"},
		{"/v1/acquire", `{"rule":"exports","key":"k"}`, "a permit may be in use until its ttl ends"},
		{"/v1/renew", `{"id":"` + held + `"}`, "the permit may or may not have been renewed"},
		{"/v1/release", `{"id":"` + held + `"}`, "may or may not have been released; if not, it expires"},
	} {
		got := f.post(c.path, c.body)
		got.want(t, 503, `"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"`,
			`"status":503`, c.says)
		if strings.Contains(got.text, "broken") || got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("the answer is %v %s", got.Header, got.text)
		}
	}
	f.send("DELETE", "/v1/keys/login/k", "").want(t, 503, "the key may or may not have been reset")
	f.post("/v1/take", `{"rule":"trial","key":"k"}`).want(t, 200, `"allowed":true`) // in shadow
}

func TestDegraded(t *testing.T) {
	store, err := fallback.New(broken{}, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return 5 }, Timeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, store, Settings{})
	f.post("/v1/take", `{"rule":"login","key":"k"}`).want(t, 200,
		`"allowed":true`, `"limit":"1/m"`, `"remaining":0`, `"degraded":true`)
}

// A fallback that denies without having checked a limit is a store that is unavailable.
func TestUnchecked(t *testing.T) {
	store, err := fallback.New(broken{}, fallback.Options{Mode: fallback.Closed, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, store, Settings{})
	for path, body := range map[string]string{
		"/v1/take":     `{"rule":"login","key":"k"}`,
		"/v1/peek":     `{"rule":"login","key":"k"}`,
		"/v1/reserve":  `{"rule":"login","key":"k"}`,
		"/v1/take-all": `{"requests":[{"rule":"login","key":"k"},{"rule":"tokens","key":"k"}]}`,
	} {
		got := f.post(path, body)
		got.want(t, 503, `#temporary-reduced-capacity"`, "the limits cannot be checked")
		if got.Header.Get("Retry-After") != "1" || got.Header.Get("Ratelimit") != "" {
			t.Errorf("%s: %v", path, got.Header)
		}
	}
	f.post("/v1/refund", `{"rule":"login","key":"k"}`).want(t, 503, "nothing was refunded")
	f.post("/v1/take", `{"rule":"login","key":"k","cost":1000}`).want(t, 200, `"remaining":0,"reset_after":0,"degraded":true}`)
}

// A refund that a fallback drops is not reported as made.
func TestDroppedRefunds(t *testing.T) {
	store, err := fallback.New(broken{}, fallback.Options{Mode: fallback.Open, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, store, Settings{})
	f.post("/v1/refund", `{"rule":"login","key":"k"}`).want(t, 503, "nothing was refunded")
	id := f.post("/v1/reserve", `{"rule":"login","key":"k","cost":3}`).id(t)
	f.post("/v1/commit", `{"id":"`+id+`","cost":0}`).want(t, 200, `"refunded":0`, `"degraded":true`)
}

func TestObserve(t *testing.T) {
	f := start(t, nil, Settings{AllowInlineLimits: true})
	f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`)
	f.post("/v1/take", `{"rule":"login","key":"k"}`)
	f.post("/v1/take", `{"rule":"login","key":"k","max_wait":60}`)
	f.post("/v1/take", `{"limit":"5/m","key":"k"}`)  // of no rule
	f.post("/v1/peek", `{"rule":"login","key":"k"}`) // charges nothing
	f.post("/v1/take", `{"rule":"trial","key":"k","cost":2}`)
	f.post("/v1/take", `{"rule":"unused","key":"k"}`)
	var got []string
	for _, e := range f.events {
		got = append(got, e.Rule.Name+" "+e.Key+" "+e.Outcome.String())
	}
	const want = "login k allowed, login k denied, login k allowed, trial k shadow_denied"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("observed %s\nwant     %s", text, want)
	}
}

func TestInlineLimits(t *testing.T) {
	f := start(t, nil, Settings{})
	const k = `{"limit":"2/m burst 3","key":"k"}`
	f.post("/v1/take", k).want(t, http.StatusForbidden, `"field":"limit"`, "api.allow_inline_limits")
	f.handler.Use(Settings{AllowInlineLimits: true})
	f.post("/v1/take", k).want(t, 200, `{"allowed":true,"limit":"2/m burst 3","capacity":3,"remaining":2`)
	f.post("/v1/take", `{"limit":"login=9/s","key":"k"}`).want(t, 400, "without a name")
	f.post("/v1/take", `{"limit":"9/fortnight","key":"k"}`).want(t, 400, `"field":"limit"`, `limit \"9/fortnight\": period`)
}

// Without a cost, a request is charged the fixed cost of its rule, or its estimate, but no more than
// the limit can hold beside the headroom.
func TestCostOfTheRule(t *testing.T) { synctest.Test(t, testCostOfTheRule) }

func testCostOfTheRule(t *testing.T) {
	f := build(t, nil, Settings{AllowInlineLimits: true})
	for _, c := range []struct{ path, body, want string }{
		{"/v1/take", `{"rule": "costly", "key": "k"}`, `"remaining":95,`},
		{"/v1/take", `{"rule": "costly", "key": "k", "cost": 1}`, `"remaining":94,`},
		{"/v1/take-all", `{"requests": [{"rule": "costly", "key": "k"}]}`, `"remaining":89,`},
		{"/v1/reserve", `{"rule": "costly", "key": "k"}`, `"remaining":84,`},
		{"/v1/refund", `{"rule": "costly", "key": "k"}`, `"remaining":89,`},
		{"/v1/peek", `{"rule": "costly", "key": "k"}`, `"remaining":89,`},
		{"/v1/take", `{"rule": "model", "key": "a"}`, `"remaining":0,`},
		{"/v1/take", `{"rule": "model", "key": "b", "headroom": 400}`, `"remaining":400,`},
		{"/v1/take", `{"rule": "model", "key": "c", "cost": 2000}`, `"allowed":false,`},
		{"/v1/reserve", `{"rule": "model", "key": "c"}`, `"remaining":0,`},
		{"/v1/take", `{"limit": "10/h", "key": "k"}`, `"remaining":9,`},
		{"/v1/take", `{"rule": "tokens", "key": "k"}`, `"remaining":999,`},
	} {
		f.post(c.path, c.body).want(t, http.StatusOK, c.want)
	}
}
