package usage

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
)

// Answer is what was seen of an answer.
type Answer struct {
	Counts   Counts // so far
	Complete bool   // the answer has ended, and has said what it used
	Failed   bool   // its status is 400 or above
}

// Body is the body of an answer, from which usage is read as the body passes. It may be closed
// while it is read.
type Body struct {
	io.ReadCloser

	status int
	mu     sync.Mutex
	reader *reader // nil: no usage can be read
	zipped *unzip  // nil: reader reads the body as it is
	ended  bool    // the body was read to its end
}

// NewBody returns the body of r. Usage can be read from JSON and from server-sent events, as they
// are or compressed by gzip.
func NewBody(r *http.Response) *Body {
	b := &Body{ReadCloser: r.Body, status: r.StatusCode}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	stream := media == "text/event-stream"
	if !stream && media != "application/json" && !strings.HasSuffix(media, "+json") {
		return b
	}
	b.reader = newReader(stream)
	switch strings.ToLower(strings.Join(r.Header["Content-Encoding"], ",")) {
	case "", "identity":
	case "gzip", "x-gzip":
		b.zipped = newUnzip(b.reader)
	default:
		b.reader = nil
	}
	return b
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.reader == nil:
	case b.zipped != nil:
		b.zipped.push(p[:n])
	default:
		b.reader.push(p[:n])
	}
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Answer returns what was seen. What is read after it does not count.
func (b *Body) Answer() Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := Answer{Failed: b.status >= http.StatusBadRequest}
	if b.reader == nil {
		return a
	}
	intact := b.zipped == nil || b.zipped.close()
	whole := intact && (b.ended || b.reader.done)
	a.Counts = b.reader.counts()
	a.Complete = whole && b.reader.counted.final && !b.reader.bad
	b.reader = nil
	return a
}
