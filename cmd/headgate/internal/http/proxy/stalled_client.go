package proxy

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// This file bounds clients that stop in the middle of a body. A stream may last for ever, and may
// be silent for long; but what is sent must arrive.

// pacedWriter is a response whose client must take each part within a time.
type pacedWriter struct {
	http.ResponseWriter

	controller *http.ResponseController
	stall      time.Duration
}

func newPacedWriter(w http.ResponseWriter, stall time.Duration) *pacedWriter {
	p := &pacedWriter{ResponseWriter: w, controller: http.NewResponseController(w), stall: stall}
	p.bound(false) // the request before may have left a bound on the connection
	return p
}

// bound sets or removes the bound of the next write. Where that is not possible, there is none.
func (w *pacedWriter) bound(on bool) {
	var deadline time.Time
	if on {
		deadline = time.Now().Add(w.stall)
	}
	_ = w.controller.SetWriteDeadline(deadline)
}

// Write implements io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	w.bound(true)
	defer w.bound(false)
	return w.ResponseWriter.Write(p)
}

// FlushError is called by [http.ResponseController].
func (w *pacedWriter) FlushError() error {
	w.bound(true)
	defer w.bound(false)
	return w.controller.Flush()
}

// Unwrap is called by [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish bounds what the server writes after the handler.
func (w *pacedWriter) finish() { w.bound(true) }

// dropBody bounds how long the server waits for the rest of a body that is not passed on.
func (w *pacedWriter) dropBody(r *http.Request) {
	if r.ContentLength != 0 {
		_ = w.controller.SetReadDeadline(time.Now().Add(min(w.stall/2, time.Second)))
	}
}

// pacedBody is the body of a request whose client must send each part within a time.
type pacedBody struct {
	io.ReadCloser

	controller *http.ResponseController
	stall      time.Duration
	failed     atomic.Bool // the body ended before its end
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	b.bound(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.failed.Store(true) // and the bound stays, for the server reads on
		return n, err
	}
	b.bound(false)
	return n, err
}

// Close implements io.Closer. The server reads a little of what is left.
func (b *pacedBody) Close() error {
	if b.failed.Load() {
		return b.ReadCloser.Close()
	}
	b.bound(true)
	defer b.bound(false)
	return b.ReadCloser.Close()
}

// bound sets or removes the bound of the next read. It must not stay on a connection without a
// body to read, where the server waits to see whether the client leaves.
func (b *pacedBody) bound(on bool) {
	var deadline time.Time
	if on {
		deadline = time.Now().Add(b.stall)
	}
	_ = b.controller.SetReadDeadline(deadline)
}
