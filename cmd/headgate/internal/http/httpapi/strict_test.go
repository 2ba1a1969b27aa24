package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// TestStrict: bad input gets one problem document, which names the field and what is wanted.
func TestStrict(t *testing.T) {
	f := start(t, nil, Settings{})
	for _, c := range []struct{ path, body, field, detail string }{
		{"take", ``, "body", "body is empty; want a JSON object"},
		{"take", `[]`, "body", "body is not a JSON object; want an object with rule, limit, key, cost, headroom, max_wait"},
		{"take", ` {"rule" : "login" , "cost" : { "a" : [ "}" ] } } `, "cost", "cost is {"},
		{"take", `{"cost":[1,{"\"":2}],"rule":"login"}`, "cost", "want a whole number"},
		{"take", `"x"`, "body", "body is not a JSON object"},
		{"take", `{"rule":"login"`, "body", "it ends too early"},
		{"take", `{"rule":"login",}`, "body", "body is not JSON"},
		{"take", `{"rule":"login","key":"k"} {}`, "body", "body is followed by more text"},
		{"take", `{"rule":"login","key":"k"}x`, "body", "body is followed by more text"},
		{"take", `{"rule":"login","keys":"k"}`, "keys", "keys is an unknown field; want rule, limit, key, cost"},
		{"take", `{"RULE":"login"}`, "RULE", "RULE is an unknown field"},
		{"take", `{"rule":"login","rule":"x"}`, "rule", "rule is given twice; want it once"},
		{"take", `{"rule":7}`, "rule", "rule is 7; want a text of at most 200 bytes"},
		{"take", `{"rule":null}`, "rule", "rule is null; want a text"},
		{"take", `{"key":"k"}`, "rule", "rule is missing"},
		{"take", `{"rule":"visits"}`, "key", "key is missing; want a key such as ip:192.0.2.1"},
		{"take", `{"rule":"visits","key":""}`, "key", "key is missing"},
		{"peek", `{"rule":"visits"}`, "key", "key is missing"},
		{"take-all", `{"requests":[{"rule":"login"},{"rule":"visits"}]}`, "requests[1].key", "requests[1].key is missing"},
		{"take", `{"rule":"login","limit":"5/m"}`, "limit", "one of rule and limit"},
		{"take", `{"rule":"login","limit":""}`, "limit", "one of rule and limit"},
		{"take", `{"rule":"","limit":"5/m"}`, "limit", "one of rule and limit"},
		{"take", `{"limit":""}`, "rule", "rule is missing"},
		{"take", `{"rule":"login","cost":0}`, "cost", "cost is 0; want a whole number from 1 to 9007199254740991"},
		{"take", `{"rule":"login","cost":1.5}`, "cost", "cost is 1.5; want a whole number"},
		{"take", `{"rule":"login","cost":"1"}`, "cost", `cost is \"1\"; want a whole number`},
		{"take", `{"rule":"login","cost":9007199254740992}`, "cost", "cost is 9007199254740992"},
		{"take", `{"rule":"login","cost":9223372036854775808}`, "cost", "want a whole number"},
		{"take", `{"rule":"login","max_wait":-1}`, "max_wait", "max_wait is -1; want a number of seconds from 0"},
		{"take", `{"rule":"login","max_wait":"1s"}`, "max_wait", "want a number of seconds"},
		{"take", `{"rule":"login","max_wait":1e999}`, "max_wait", "want a number of seconds"},
		{"take", `{"rule":"login","key":"` + strings.Repeat("k", 4097) + `"}`, "key", "want a text of at most 4096 bytes"},
		{"take", "{\"rule\":\"login\",\"key\":\"\xff\"}", "body", "body is not UTF-8"},
		{"take", `{"rule":"login","key":"\ud800"}`, "key", "want a text without lone surrogates"},
		{"take", `{"rule":"login","key":"\ufffd\ud800"}`, "key", "want a text without lone surrogates"},
		{"take", `{"rule":"login","key":"\\ufffd\ud800"}`, "key", "want a text without lone surrogates"},
		{"peek", `{"rule":"login","cost":1}`, "cost", "cost is an unknown field; want rule, limit, key"},
		{"refund", `{"rule":"login","cost":-1}`, "cost", "cost is -1; want"},
	} {
		got := f.post("/v1/"+c.path, c.body)
		got.want(t, http.StatusBadRequest, `"field":"`+c.field+`"`, c.detail,
			`"type":"about:blank"`, `"title":"Bad Request"`)
		if got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("the type is %s", got.Header.Get("Content-Type"))
		}
		if len(got.text) > 1000 {
			t.Errorf("the answer has %d bytes", len(got.text))
		}
	}
	f.post("/v1/take", `{"rule":"login","cost":2.0}`).want(t, http.StatusOK, `"remaining":3`)
	f.post("/v1/take", `{"rule":"x","key":"`+strings.Repeat("k", 70_000)+`"}`).
		want(t, http.StatusRequestEntityTooLarge, "want at most 65536 bytes")
	f.post("/v1/take", `{"rule":"nobody","key":"k"}`).
		want(t, http.StatusNotFound, `rule is \"nobody\"; want the name of a rule in the file`)
}

// TestCharacters: every text is a key of its own.
func TestCharacters(t *testing.T) { synctest.Test(t, testCharacters) }

func testCharacters(t *testing.T) {
	f := build(t, nil, Settings{})
	for _, key := range []string{`\u0000`, `\ud83d\ude00`, "ü", `\ufffd`, `\\ud800`, `\"`} {
		f.post("/v1/take", `{"rule":"login","key":"`+key+`"}`).want(t, 200, `"remaining":4`)
	}
	f.post("/v1/take", "{\"rule\":\"login\",\"key\":\"\uFFFD\"}").want(t, 200, `"remaining":3`)
}

func TestPaths(t *testing.T) {
	f := start(t, nil, Settings{})
	for _, path := range []string{"/v1/nothing", "/v1", "/v1/", "/v1/keys/login", "/v1/overrides/login"} {
		f.send("DELETE", path, "").want(t, http.StatusNotFound, "/v1/openapi.yaml")
	}
	for path, want := range map[string]string{
		"//v1/take": "/v1/take", "/v1/../v1/take": "/v1/take", "/v1/./take": "/v1/take", "//": "/",
		"/v1/keys/login/a//b": "/v1/keys/login/a/b", "/v1/keys/login/a/../": "/v1/keys/login/",
	} {
		f.send("DELETE", path, "").want(t, http.StatusNotFound,
			`the path is \"`+path+`\"; want \"`+want+`\"`)
	}
	for path, allow := range map[string]string{
		"/v1/take": "POST", "/v1/overrides": "GET, PUT", "/v1/keys/login/k": "DELETE",
	} {
		got := f.send("PATCH", path, "{}")
		got.want(t, http.StatusMethodNotAllowed, "the method is not allowed; want ")
		if got.Header.Get("Allow") != allow {
			t.Errorf("Allow is %q, want %q", got.Header.Get("Allow"), allow)
		}
	}
}

func TestTokens(t *testing.T) {
	f := start(t, nil, Settings{Tokens: []string{"first", "second"}})
	const k = `{"rule":"login","key":"k"}`
	for field, status := range map[string]int{
		"Authorization: Bearer first":  200,
		"Authorization: bearer second": 200,
		"Authorization: Bearer third":  401,
		"Authorization: Bearer ":       401,
		"Authorization: Basic first":   401,
		"X: y":                         401,
	} {
		got := f.post("/v1/take", k, field)
		got.want(t, status)
		if (got.Header.Get("WWW-Authenticate") != "") != (status == 401) {
			t.Errorf("WWW-Authenticate is %q", got.Header.Get("WWW-Authenticate"))
		}
	}
	f.send("GET", "/v1/overrides", "").want(t, 401)
	f.send("GET", "/v1/nothing", "").want(t, 401)
	f.handler.Use(Settings{Tokens: []string{"third"}})
	f.post("/v1/take", k, "Authorization: Bearer first").want(t, 401)
	f.post("/v1/take", k, "Authorization: Bearer third").want(t, 200)
}

// TestCrossSite: a page of another site cannot use the server through a browser.
func TestCrossSite(t *testing.T) {
	f := start(t, nil, Settings{})
	const k = `{"rule":"login","key":"k"}`
	f.post("/v1/take", k, "Sec-Fetch-Site: cross-site").want(t, http.StatusForbidden, "another site")
	f.post("/v1/take", k, "Origin: https://example.com").want(t, http.StatusForbidden)
	f.post("/v1/take", k, "Sec-Fetch-Site: same-origin").want(t, 200)
}

// FuzzBodies: no body ends the process, and each answer is JSON.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"rule":"login","key":"k","cost":1,"max_wait":0.5}`, `{"rule":`, `{"limit":"5/m","key":""}`,
		`{"requests":[{"rule":"login","key":"k"}]}`, `{"id":"r1.e30","cost":1}`, `{"id":"p1.e30"}`,
		`{"rule":"login","key":"*","limits":["5/m"],"for":1}`,
	} {
		f.Add(body)
	}
	paths := []string{"take", "take-all", "peek", "refund", "reserve", "commit", "acquire", "renew", "release"}
	f.Fuzz(func(t *testing.T, body string) {
		s := start(t, nil, Settings{AllowInlineLimits: true})
		for _, path := range paths {
			if got := s.post("/v1/"+path, body); got.StatusCode >= 500 {
				t.Errorf("%s answers %d %s", path, got.StatusCode, got.text)
			} else {
				got.want(t, got.StatusCode)
			}
		}
		s.send("PUT", "/v1/overrides", body)
	})
}
