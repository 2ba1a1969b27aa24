package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// description is openapi.yaml, read and checked by rules of its own.
type description struct {
	*openapi3.T

	router routers.Router
}

func describe(t *testing.T, f *server) description {
	t.Helper()
	got := f.send("GET", "/v1/openapi.yaml", "")
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/yaml" {
		t.Fatalf("the description is answered %d as %s", got.StatusCode, got.Header.Get("Content-Type"))
	}
	d, err := openapi3.NewLoader().LoadFromData([]byte(got.text))
	if err != nil {
		t.Fatal(err)
	}
	d.Servers = openapi3.Servers{{URL: f.URL}}
	if err := d.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(d)
	if err != nil {
		t.Fatal(err)
	}
	return description{d, router}
}

// exchange sends a request, and checks it and the answer against the description.
func (d description) exchange(t *testing.T, f *server, method, path, body string, prefer bool) response {
	t.Helper()
	fields := []string{"Content-Type: application/json"}
	if prefer {
		fields = append(fields, "Prefer: status")
	}
	got := f.send(method, path, body, fields...)
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	route, parameters, err := d.router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s is not described: %v", method, path, err)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
		},
	}
	if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil && got.StatusCode < 400 {
		t.Errorf("%s %s %s does not fit the description: %v", method, path, body, err)
	} else if err == nil && got.StatusCode == http.StatusBadRequest {
		t.Errorf("%s %s %s fits the description, and is answered %s", method, path, body, got.text)
	}
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: got.StatusCode, Header: got.Header,
		Body: io.NopCloser(strings.NewReader(got.text)), Options: in.Options,
	}); err != nil {
		t.Errorf("the answer to %s %s %s, %d %s, does not fit the description: %v",
			method, path, body, got.StatusCode, got.text, err)
	}
	return got
}

// exampleID is an id in the description, which no server has signed.
var exampleID = regexp.MustCompile(`r1\.[A-Za-z0-9_-]+`)

// TestExamples sends every example of the description to a server, with and without Prefer.
func TestExamples(t *testing.T) {
	const minimum = 24
	sent := 0
	for _, prefer := range []bool{false, true} {
		f := start(t, nil, Settings{AllowInlineLimits: true})
		d := describe(t, f)
		for _, path := range d.Paths.InMatchingOrder() {
			for method, operation := range d.Paths.Value(path).Operations() {
				for name, body := range examples(t, operation) {
					f := start(t, nil, Settings{AllowInlineLimits: true})
					d := describe(t, f)
					where := strings.NewReplacer("{rule}", "login", "{key}", "ip:192.0.2.1").Replace(path)
					if strings.Contains(body, `"r1.`) {
						id := f.post("/v1/reserve", `{"rule":"tokens","key":"user:42","cost":800}`).id(t)
						body = exampleID.ReplaceAllString(body, id)
					}
					got := d.exchange(t, f, method, where, body, prefer)
					if got.StatusCode >= 400 && got.StatusCode != http.StatusTooManyRequests {
						t.Errorf("the example %q of %s %s is answered %d %s", name, method, path, got.StatusCode, got.text)
					}
					sent++
				}
			}
		}
	}
	if sent < 2*minimum {
		t.Errorf("%d examples were sent, want at least %d", sent, 2*minimum)
	}
}

// examples returns the bodies of an operation by their names; one empty body if it has none.
func examples(t *testing.T, operation *openapi3.Operation) map[string]string {
	t.Helper()
	if operation.RequestBody == nil {
		return map[string]string{"": ""}
	}
	bodies := make(map[string]string)
	for name, e := range operation.RequestBody.Value.Content.Get("application/json").Examples {
		body, err := json.Marshal(e.Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		bodies[name] = string(body)
	}
	if len(bodies) == 0 {
		t.Errorf("%s has no example", operation.OperationID)
	}
	return bodies
}

// TestDescribed: the answers of a whole session, and its problems, fit the description.
func TestDescribed(t *testing.T) {
	f := start(t, nil, Settings{})
	d := describe(t, f)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/take", `{"rule":"login","key":"k","cost":5}`, 200},
		{"POST", "/v1/take", `{"rule":"login","key":"k"}`, 200},
		{"POST", "/v1/take", `{"rule":"login","key":"k","max_wait":60}`, 200},
		{"POST", "/v1/take", `{"rule":"login","key":"k","cost":0}`, 400},
		{"POST", "/v1/take", `{"rule":"login","keys":"k"}`, 400},
		{"POST", "/v1/take", `{"rule":"nobody","key":"k"}`, 404},
		{"POST", "/v1/take", `{"limit":"5/m","key":"k"}`, 403},
		{"POST", "/v1/take", `{"key":"k"}`, 400},
		{"POST", "/v1/take", `{"rule":"login","limit":"5/m"}`, 400},
		{"POST", "/v1/take", `{"rule":"login","limit":""}`, 400},
		{"POST", "/v1/take", `{"rule":"login","limit":"5/m","key":"k"}`, 400},
		{"POST", "/v1/take", `{"limit":"5/m"}`, 403},
		{"POST", "/v1/take", `{"rule":"login","force":true,"max_wait":1}`, 400},
		{"POST", "/v1/take", `{"rule":"login","headroom":1,"max_wait":1}`, 400},
		{"POST", "/v1/take", `{"rule":"login","force":true,"headroom":0,"max_wait":0}`, 200},
		{"POST", "/v1/take", `{"rule":"login","max_wait":31622401}`, 400},
		{"POST", "/v1/take-all", `{"requests":[{"key":"k"}]}`, 400},
		{"POST", "/v1/acquire", `{"key":"k"}`, 400},
		{"POST", "/v1/peek", `{"rule":"login"}`, 200},
		{"POST", "/v1/commit", `{"id":"p1.e30","cost":1}`, 400},
		{"POST", "/v1/renew", `{"id":"r1.e30"}`, 400},
		{"POST", "/v1/release", `{"id":"r1.e30"}`, 400},
		{"PUT", "/v1/overrides", `{"rule":"login","key":"a","ban":true,"limits":["5/m"]}`, 400},
		{"PUT", "/v1/overrides", `{"rule":"login","key":"a","ban":false}`, 400},
		{"PUT", "/v1/overrides", `{"rule":"login","key":"a","ban":true,"for":9,"until":"2099-01-01T00:00:00Z"}`, 400},
		{"PUT", "/v1/overrides", `{"rule":"login","key":"a","ban":false,"limits":["5/m"],"for":9}`, 200},
		{"POST", "/v1/peek", `{"rule":"login","key":"k"}`, 200},
		{"PUT", "/v1/overrides", `{"rule":"login","key":"b*","ban":true}`, 200},
		{"GET", "/v1/overrides", "", 200},
		{"POST", "/v1/take", `{"rule":"login","key":"bad"}`, 200},
		{"POST", "/v1/acquire", `{"rule":"exports","key":"k"}`, 200},
		{"POST", "/v1/acquire", `{"rule":"exports","key":"k"}`, 200},
		{"POST", "/v1/acquire", `{"rule":"exports","key":"k"}`, 200},
		{"POST", "/v1/commit", `{"id":"x","cost":1}`, 400},
		{"DELETE", "/v1/overrides/login/b%2A", "", 200},
		{"DELETE", "/v1/keys/login/k", "", 204},
		{"DELETE", "/v1/keys/nobody/k", "", 404},
	} {
		if got := d.exchange(t, f, c.method, c.path, c.body, false); got.StatusCode != c.status {
			t.Errorf("%s %s %s is answered %d %s, want %d", c.method, c.path, c.body, got.StatusCode, got.text, c.status)
		}
	}
}

// TestRoutesAreDescribed: what the server serves is what the description lists.
func TestRoutesAreDescribed(t *testing.T) {
	f := start(t, nil, Settings{})
	d := describe(t, f)
	for path, item := range d.Paths.Map() {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "PATCH"} {
			where := strings.NewReplacer("{rule}", "login", "{key}", "k").Replace(path)
			got := f.send(method, where, "{}")
			served := got.StatusCode != http.StatusMethodNotAllowed
			if described := item.GetOperation(method) != nil; served != described {
				t.Errorf("%s %s is answered %d, and described: %v", method, path, got.StatusCode, described)
			}
		}
	}
}
