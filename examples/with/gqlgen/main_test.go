package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

type response struct {
	Status int             `json:"-"` // of HTTP
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string `json:"message"`
		Extensions struct {
			Code       string `json:"code"`
			RetryAfter int    `json:"retryAfter"` // seconds
		} `json:"extensions"`
	} `json:"errors"`
}

func query(t *testing.T, h http.Handler, key, query string) (answer response) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
		strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	answer.Status = w.Code
	return answer
}

func TestComplexity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler(headgate.NewMemory())
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			key, query, code string
			retryAfter       int // seconds
		}{
			{"a", `{ users(first: 70) { name } }`, "", 0},
			{"a", `{ users(first: 40) { name } }`, "RATE_LIMITED", 6}, // 10 more, at 100 a minute
			{"a", `{ users(first: 30) { name } }`, "", 0},             // the denied one took none
			{"b", `{ users(first: 40) { name } }`, "", 0},
			{"a", `{ __schema { queryType { name } } }`, "", 0}, // costs nothing
			{"b", `{ users(first: 101) { name } }`, "COMPLEXITY_LIMIT_EXCEEDED", 0},
			{"b", `{ users(first: 60) { name } }`, "", 0}, // that one took none, too
		} {
			answer := query(t, h, c.key, c.query)
			if answer.Status != http.StatusOK {
				t.Errorf("query %d: status %d", i+1, answer.Status)
			}
			if c.code == "" {
				if len(answer.Errors) > 0 || string(answer.Data) != `{"users":[]}` {
					t.Errorf("query %d: %+v", i+1, answer)
				}
				continue
			}
			if len(answer.Errors) != 1 || answer.Errors[0].Extensions.Code != c.code ||
				answer.Errors[0].Extensions.RetryAfter != c.retryAfter {
				t.Errorf("query %d: %+v", i+1, answer)
			}
		}
	})
}

// Queries pass while the store is unavailable. Nothing listens on port 1.
func TestUnavailable(t *testing.T) {
	store, err := redisstore.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHandler(store)
	if err != nil {
		t.Fatal(err)
	}
	if answer := query(t, h, "a", `{ users(first: 70) { name } }`); len(answer.Errors) > 0 {
		t.Errorf("%+v", answer)
	}
}
