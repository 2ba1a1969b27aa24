package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// serveCounted calls the handler, and refunds the cost of r unless the status of the response
// counts. A handler that panics leaves r charged.
func (h *handler) serveCounted(w http.ResponseWriter, r *http.Request, v Verdict) {
	c := &countedWriter{
		ResponseWriter: w, handler: h, request: r.WithContext(r.Context()), verdict: v,
	}
	h.next.ServeHTTP(c, r)
	//nolint:contextcheck // c has the context of r
	c.outcome(http.StatusOK) // which net/http sends if the handler wrote nothing
}

// countedWriter is a response whose status decides whether its request counts.
type countedWriter struct {
	http.ResponseWriter

	handler *handler
	request *http.Request // a copy, because a handler may change its own
	verdict Verdict
	known   bool // the first status is the outcome
}

// outcome decides whether the request counts, once.
func (w *countedWriter) outcome(status int) {
	if !w.known {
		w.known = true
		w.handler.Outcome(w.request.Context(), w.request, w.verdict, status)
	}
}

// WriteHeader implements [http.ResponseWriter]. An informational status is no outcome.
func (w *countedWriter) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status) // panics if there is no such status
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.outcome(status)
	}
}

// Write implements io.Writer.
func (w *countedWriter) Write(p []byte) (int, error) {
	w.outcome(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, by which net/http sends files.
func (w *countedWriter) ReadFrom(from io.Reader) (int64, error) {
	w.outcome(http.StatusOK)
	return io.Copy(w.ResponseWriter, from)
}

// Flush implements [http.Flusher].
func (w *countedWriter) Flush() { _ = w.FlushError() }

// FlushError is called by [http.ResponseController].
func (w *countedWriter) FlushError() error {
	w.outcome(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker]. The handler has switched the protocol.
func (w *countedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.outcome(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Unwrap is called by [http.ResponseController].
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
