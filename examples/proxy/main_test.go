package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := newHandler("127.0.0.0/8,::1/128")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			peer, forwarded string // %d changes with each request
			granted         int
		}{
			{"127.0.0.1:1", "192.0.2.%d", 30},             // clients of the proxy
			{"127.0.0.1:1", "6.6.6.%d, 198.51.100.1", 20}, // one that forges
			{"203.0.113.1:1", "6.6.6.%d", 20},             // one beside the proxy
		} {
			granted := 0
			for i := range 30 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.RemoteAddr = c.peer
				r.Header.Set("X-Forwarded-For", fmt.Sprintf(c.forwarded, i))
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code == http.StatusOK {
					granted++
				}
			}
			if granted != c.granted {
				t.Errorf("%+v: %d granted", c, granted)
			}
		}
		if _, err := newHandler("localhost"); err == nil {
			t.Error("a name is no network")
		}
	})
}
