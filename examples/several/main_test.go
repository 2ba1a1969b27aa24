package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		ask := func(method, user string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
			r.SetBasicAuth(user, "")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		for range 2 {
			if w := ask(http.MethodPost, "ada"); w.Code != http.StatusOK {
				t.Fatalf("%d", w.Code)
			}
		}
		if got := ask(http.MethodGet, "ada").Header().Get("Ratelimit"); got != `"second";r=0;t=1` {
			t.Errorf("after two writes: %s", got)
		}
		if w := ask(http.MethodGet, "bob"); w.Code != http.StatusOK {
			t.Errorf("another user: %d", w.Code)
		}
		reads := 0
		for range 100 {
			time.Sleep(time.Second)
			for range 10 {
				if ask(http.MethodGet, "ada").Code == http.StatusOK {
					reads++
				}
			}
		}
		if reads != 990 {
			t.Errorf("%d reads after 10 tokens of the day; want 990", reads)
		}
	})
}
