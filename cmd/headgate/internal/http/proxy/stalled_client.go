package proxy

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// This file bounds clients that stop in the middle of a body, or nearly so. A response may last for
// ever, and may be silent for long; but what is sent must arrive.

// pacedWriter is a response whose client must take each part within a time.
type pacedWriter struct {
	http.ResponseWriter

	controller *http.ResponseController
	stall      time.Duration
	own        func(http.Header) // called with the fields of an answer of the proxy itself
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

// WriteHeader implements [http.ResponseWriter].
func (w *pacedWriter) WriteHeader(status int) {
	if status >= http.StatusOK && w.own != nil {
		w.own(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish bounds what the server writes after the handler.
func (w *pacedWriter) finish() { w.bound(true) }

// dropBody bounds how long the server waits for the rest of a body that is not passed on.
func (w *pacedWriter) dropBody(r *http.Request) {
	if r.ContentLength != 0 {
		_ = w.controller.SetReadDeadline(time.Now().Add(min(w.stall/2, dropTime)))
	}
}

const (
	dropTime   = time.Second
	hurryTime  = 5 * time.Second // while the server stops
	leastBytes = 500             // of a body each second, on average over the time of a stall
)

// pacedBody is the body of a request whose client must send it at a least rate. Only the time in
// which the server waits for the client counts.
type pacedBody struct {
	io.ReadCloser

	controller *http.ResponseController
	endless    bool          // a stream of gRPC, which may be silent for long
	stall      time.Duration // for how long the server waits if nothing comes
	left       time.Duration // of that
	failed     atomic.Bool   // the body ended before its end

	request *http.Request // whose trailer is there at the end of the body
	trailer http.Header   // what is passed on of it

	mu      sync.Mutex
	reading bool
	hurried bool
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	began := time.Now()
	b.begin(began)
	n, err := b.ReadCloser.Read(p)
	b.left += time.Duration(n)*time.Second/leastBytes - time.Since(began)
	if err != nil && err != io.EOF {
		b.failed.Store(true) // and the bound stays, for the server reads on
		return n, err
	}
	b.end()
	if err == io.EOF {
		for name := range b.trailer {
			b.trailer[name] = b.request.Trailer[name]
		}
	}
	return n, err
}

// Close implements io.Closer. The server reads a little of what is left.
func (b *pacedBody) Close() error {
	if b.failed.Load() {
		return b.ReadCloser.Close()
	}
	b.bound(time.Now().Add(min(b.stall/2, dropTime)))
	defer b.bound(time.Time{})
	return b.ReadCloser.Close()
}

// begin bounds a read that begins.
func (b *pacedBody) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = true
	most := b.stall
	if b.hurried {
		most = min(most, hurryTime)
	}
	if b.left = min(b.left, most); !b.endless {
		b.bound(now.Add(b.left))
	}
}

// end removes the bound. It must not stay on a connection without a body to read, where the server
// waits to see whether the client leaves.
func (b *pacedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	b.bound(time.Time{})
}

// hurry lets the server wait less, because it stops.
func (b *pacedBody) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hurried = true; b.reading && !b.endless {
		b.bound(time.Now().Add(min(b.stall, hurryTime)))
	}
}

// bound bounds the reads of the connection, or not if at is zero.
func (b *pacedBody) bound(at time.Time) { _ = b.controller.SetReadDeadline(at) }
