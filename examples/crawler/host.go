package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// host is a web server on this machine with fast pages of 1 KB and slow ones of 5 KB. It
// records the times of its requests.
type host struct {
	*httptest.Server

	begun time.Time
	mu    sync.Mutex
	asked []time.Time
}

func startHost() *host {
	h := &host{begun: time.Now()}
	h.Server = httptest.NewServer(h.pages())
	return h
}

// pages serves the pages.
func (h *host) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fast/{page}", func(w http.ResponseWriter, _ *http.Request) {
		h.write(w, 1000)
	})
	mux.HandleFunc("GET /slow/{page}", func(w http.ResponseWriter, _ *http.Request) {
		h.write(w, 2500)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(100 * time.Millisecond)
		_, _ = w.Write(bytes.Repeat([]byte("."), 2500)) // the crawler may be gone
	})
	return mux
}

func (h *host) write(w http.ResponseWriter, n int) {
	h.mu.Lock()
	h.asked = append(h.asked, time.Now())
	h.mu.Unlock()
	_, _ = w.Write(bytes.Repeat([]byte("."), n))
}

// politely reports whether requests kept the limit of the host since it began. Some take longer to
// arrive than others, so the time between two of them says less.
func (h *host) politely() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, at := range h.asked {
		if at.Sub(h.begun) < time.Duration(i)*time.Second/hostRate-time.Millisecond {
			return false
		}
	}
	return true
}
