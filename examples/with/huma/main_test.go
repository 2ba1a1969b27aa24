package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/headgate/headgate"
)

type text struct{ Body string }

func TestLimit(t *testing.T) {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Test", "1.0.0"))
	if err := limit(api, headgate.PerMinute(20)); err != nil {
		t.Fatal(err)
	}
	answer := func(err error) func(context.Context, *struct{}) (*text, error) {
		return func(context.Context, *struct{}) (*text, error) { return &text{"hello"}, err }
	}
	costs10 := func(o *huma.Operation) { o.Metadata = map[string]any{"cost": 10} }
	huma.Get(api, "/hello", answer(nil))
	huma.Get(api, "/export", answer(nil), costs10)
	huma.Get(api, "/broken", answer(huma.Error500InternalServerError("broken")), costs10)
	server := httptest.NewServer(mux)
	defer server.Close()

	for i, c := range []struct {
		path   string
		status int
		field  string // what RateLimit begins with
	}{
		{"/hello", 200, `"20/m";r=19;`},
		{"/broken", 500, `"20/m";r=9;`}, // refunded after it
		{"/export", 200, `"20/m";r=9;`},
		{"/export", 429, `"20/m";r=9;`},
		{"/hello", 200, `"20/m";r=8;`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var problem huma.ErrorModel // what clients of Huma read
		if w.StatusCode >= http.StatusBadRequest {
			err = json.NewDecoder(w.Body).Decode(&problem)
		}
		w.Body.Close()
		if field := w.Header.Get("Ratelimit"); err != nil || w.StatusCode != c.status ||
			!strings.HasPrefix(field, c.field) {
			t.Errorf("request %d: %d, RateLimit: %s, %v", i+1, w.StatusCode, field, err)
		}
		if w.StatusCode == http.StatusTooManyRequests && (w.Header.Get("Retry-After") == "" ||
			problem.Status != w.StatusCode || !strings.HasPrefix(problem.Detail, "The limit 20/m")) {
			t.Errorf("request %d: %v %+v", i+1, w.Header, problem)
		}
	}
}
