package httplimit

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate"
)

// refundTimeout bounds the refund of a request whose outcome does not count, unless
// [Options.Timeout] does.
const refundTimeout = 5 * time.Second

// serveCounted calls the handler, and refunds the cost of r unless the status of the response
// counts. A handler that panics leaves r charged.
func (h *handler) serveCounted(w http.ResponseWriter, r *http.Request, key string, cost int64) {
	c := &countedWriter{
		ResponseWriter: w, handler: h, request: r.WithContext(r.Context()), key: key, cost: cost,
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
	key     string
	cost    int64
	known   bool // the first status is the outcome
}

// outcome refunds the cost if status does not count. The client waits for that: its next request
// finds the tokens. A client that has left cannot make a request free.
func (w *countedWriter) outcome(status int) {
	if w.known {
		return
	}
	w.known = true
	h, ctx := w.handler, w.request.Context()
	if ctx.Err() != nil || h.Count(status) {
		return
	}
	ctx, cancel := context.WithTimeout(
		context.WithoutCancel(ctx), cmp.Or(h.Timeout, refundTimeout))
	defer cancel()
	_, err := h.limiter.Refund(ctx, w.key, w.cost)
	if err != nil && h.Observe != nil {
		h.Observe(w.request, headgate.Decision{}, err)
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
