package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 21 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			want := http.StatusOK
			if i == 20 {
				want = http.StatusTooManyRequests
			}
			if w.Code != want {
				t.Errorf("request %d: %d; want %d", i, w.Code, want)
			}
		}
	})
}
