package serve

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
)

// This file recovers from panics. A panic in one request or task ends only that: the process, and
// the state that it keeps in memory, remain.

// panicked logs and counts a panic. Part is what it ended: a listener or a task.
func (s *server) panicked(part string, value any) {
	s.metrics.Panicked(part)
	s.log.Error("panic: this is a defect, please report it", "part", part, "panic", value,
		"stack", string(debug.Stack()))
}

// recovered returns h with an answer to requests that panic: 500, or the end of the connection if
// the answer has begun.
func (s *server) recovered(part string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := &startedResponse{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http compares them, too
				s.panicked(part, p)
			}
			if p == http.ErrAbortHandler || begun.begun { //nolint:errorlint // see above
				panic(http.ErrAbortHandler)
			}
			clear(w.Header()) // the fields may belong to another answer, as its length
			answer.Fail(w, http.StatusInternalServerError, "An internal error ended this request.")
		}()
		h.ServeHTTP(begun, r)
	})
}

// startedResponse notes whether the answer has begun, and spells the names of its fields.
type startedResponse struct {
	http.ResponseWriter

	begun bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *startedResponse) WriteHeader(status int) {
	w.begun = w.begun || status >= 200 || status == http.StatusSwitchingProtocols
	answer.Spell(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *startedResponse) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// FlushError is called by [http.ResponseController].
func (w *startedResponse) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// begin begins the answer as net/http would.
func (w *startedResponse) begin() {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
}

// Unwrap is called by [http.ResponseController].
func (w *startedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// restartPause is the time between a panic of a task and its next run.
const restartPause = time.Second

// keepRunning runs task until it returns without a panic, or ctx ends.
func (s *server) keepRunning(ctx context.Context, part string, task func(context.Context)) {
	for s.panics(ctx, part, task) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartPause):
		}
	}
}

// panics runs task, and reports whether it panicked.
func (s *server) panics(
	ctx context.Context, part string, task func(context.Context),
) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			s.panicked(part, p)
		}
	}()
	task(ctx)
	return false
}
