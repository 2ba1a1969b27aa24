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
		for _, c := range []struct {
			apiKey, address string
			granted         int
		}{
			{"ada", "192.0.2.1:1", 50},
			{"bob", "192.0.2.1:1", 5},
			{"", "192.0.2.1:1", 5},
			{"invented", "192.0.2.1:1", 0}, // counts against the address
			{"invented", "192.0.2.2:1", 5},
		} {
			granted := 0
			for range 60 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.RemoteAddr = c.address
				r.Header.Set("X-Api-Key", c.apiKey)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code == http.StatusOK {
					granted++
				}
			}
			if granted != c.granted {
				t.Errorf("%+v: %d granted", c, granted)
			}
		}
	})
}
