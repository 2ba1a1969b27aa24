package proxy

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
)

// This file bounds clients that stop in the middle of a body, or nearly so. A response may last for
// ever, and may be silent for long; but what is sent must arrive.

// pacedWriter is a response whose client must take each part within a time.
type pacedWriter struct {
	http.ResponseWriter

	controller *http.ResponseController
	stall      time.Duration
	own        func(http.Header) // called with the fields of an answer of the proxy itself
	body       *pacedBody        // which is passed on, in HTTP/1; nil: none is
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
	if status >= http.StatusOK && w.body != nil && !w.body.ended.Load() {
		// The response does not wait for a body that its server does not want.
		_ = w.controller.EnableFullDuplex()
		w.Header().Set("Connection", "close") // the rest is no request
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish bounds what the server writes after the handler, and ends what is left of the body, for
// which the server would wait without a bound. The response does not wait for that.
func (w *pacedWriter) finish(body *pacedBody) {
	w.bound(true)
	ended := body.ended.Load()
	if !ended && w.body != nil {
		_ = w.controller.Flush()
	}
	body.drop()
	if !ended {
		_ = body.Close()
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
	ended      atomic.Bool   // all of it was read

	request *http.Request // whose trailer is there at the end of the body
	trailer http.Header   // what is passed on of it

	mu      sync.Mutex
	ahead   bool // the request is not decided yet
	reading bool
	hurried bool
	dropped bool // no deadline may be set: over HTTP/2, that panics after the handler has returned
}

// newPacedBody returns the body of r, whose response is w.
func newPacedBody(w *pacedWriter, r *http.Request, endless bool) *pacedBody {
	b := &pacedBody{
		ReadCloser: r.Body, controller: w.controller, endless: endless,
		stall: w.stall, left: w.stall, request: r,
	}
	b.ended.Store(r.ContentLength == 0)
	return b
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
		b.ended.Store(true)
		for name := range b.trailer {
			b.trailer[name] = b.request.Trailer[name]
		}
	}
	return n, err
}

// readAhead begins or ends the part that is read before the decision. The server waits less for it.
func (b *pacedBody) readAhead(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead, b.left = on, b.stall
}

// drop bounds how long the server waits for what is left of a body that nobody wants.
func (b *pacedBody) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dropped && !b.ended.Load() && !b.failed.Load() {
		b.bound(time.Now().Add(min(b.stall/2, dropTime)))
	}
	b.dropped = true
}

// begin bounds a read that begins.
func (b *pacedBody) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = true
	most := b.stall
	if b.ahead {
		most = min(most, bodies.Patience)
	}
	if b.hurried {
		most = min(most, hurryTime)
	}
	if b.left = min(b.left, most); (b.ahead || !b.endless) && !b.dropped {
		b.bound(now.Add(b.left))
	}
}

// end removes the bound. It must not stay on a connection without a body to read, where the server
// waits to see whether the client leaves.
func (b *pacedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading = false; !b.dropped {
		b.bound(time.Time{})
	}
}

// hurry lets the server wait less, because it stops.
func (b *pacedBody) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hurried = true; b.reading && !b.endless && !b.dropped {
		b.bound(time.Now().Add(min(b.stall, hurryTime)))
	}
}

// bound bounds the reads of the connection, or not if at is zero.
func (b *pacedBody) bound(at time.Time) { _ = b.controller.SetReadDeadline(at) }
