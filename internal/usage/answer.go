package usage

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Answer is what was seen of an answer.
type Answer struct {
	Counts   Counts // so far
	Complete bool   // the answer has ended, and has said what it used
	Failed   bool   // its status is 400 or above, or it is nothing but an error
	Silent   bool   // it is a whole document of JSON that has no usage, and will have none
}

// Body is the body of an answer, from which usage is read as the body passes. It may be closed
// while it is read.
type Body struct {
	io.ReadCloser

	status int
	mu     sync.Mutex
	reader *reader // nil: no usage can be read
	zipped *unzip  // nil: reader reads the body as it is
	isJSON bool    // by its type
	ended  bool    // the body was read to its end
}

// otherTypes are those of bodies that may be JSON.
var otherTypes = []string{"", "text/plain", "application/x-ndjson", "application/ndjson"}

// NewBody returns the body of r. Usage can be read from JSON, also of several documents or without
// its type, and from server-sent events, as they are or compressed by gzip.
func NewBody(r *http.Response) *Body {
	b := &Body{ReadCloser: r.Body, status: r.StatusCode}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	stream := media == "text/event-stream"
	b.isJSON = media == "application/json" || strings.HasSuffix(media, "+json")
	if !stream && !b.isJSON && !slices.Contains(otherTypes, media) {
		return b
	}
	b.reader = newReader(stream)
	b.reader.single = b.isJSON
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
	r := b.reader
	a.Counts = r.counts()
	a.Complete = intact && (b.ended || r.done) && r.counted.final && !r.bad
	a.Failed = a.Failed || r.errors > 0 && r.others == 0
	a.Silent = intact && b.ended && b.isJSON && r.errors == 0 && r.others == 1 &&
		!r.counted.final && !r.counted.later
	b.reader = nil
	return a
}
