package serve

import (
	"net/http"
	"sync"
)

// health knows whether the server is ready: it has a configuration, its store has answered if it
// must, and it does not end.
type health struct {
	mu      sync.Mutex
	missing map[string]bool
	told    []func(ready bool)
}

// What the server waits for.
const (
	waitsForConfig = "the configuration is not loaded"
	waitsForDomain = "the configuration has no domain"
	waitsForStore  = "the store has not answered yet"
	isEnding       = "the server is shutting down"
)

// set says whether reason keeps the server from being ready.
func (h *health) set(reason string, missing bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.missing == nil {
		h.missing = make(map[string]bool)
	}
	before := len(h.missing) == 0
	if missing {
		h.missing[reason] = true
	} else {
		delete(h.missing, reason)
	}
	if now := len(h.missing) == 0; now != before {
		for _, f := range h.told {
			f(now)
		}
	}
}

// tell calls f with whether the server is ready, now and when that changes.
func (h *health) tell(f func(ready bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, f)
	f(len(h.missing) == 0)
}

// reason returns why the server is not ready, or "".
func (h *health) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, reason := range []string{isEnding, waitsForConfig, waitsForDomain, waitsForStore} {
		if h.missing[reason] {
			return reason
		}
	}
	return ""
}

// ServeHTTP answers 200 if the server is ready, and 500 with the reason if not.
func (h *health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if reason := h.reason(); reason != "" {
		writeText(w, http.StatusInternalServerError, reason+"\n")
		return
	}
	writeText(w, http.StatusOK, "OK")
}

// alive answers 200 as long as the process serves.
func alive(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "OK") }
