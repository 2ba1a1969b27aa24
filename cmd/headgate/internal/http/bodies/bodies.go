// Package bodies bounds the memory of the bodies that are read before their requests are decided.
package bodies

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/usage"
)

// ErrFull is returned by [Reader.Read] if the bodies of the process hold all that they may, or if
// the body takes too long. The body can be read on elsewhere.
var ErrFull = usage.ErrStop

const (
	// most is how many bytes the bodies of the process hold together, and mostHeld those of
	// requests that wait, so that these keep no rule from reading a body.
	most, mostHeld = 8 << 20, 16 << 20

	// free is how many bytes of each body are not counted, so that a few large bodies do not keep
	// the server from reading small ones.
	free = 4 << 10

	// Patience is how long a body may take, and how long a part of it may.
	Patience = 10 * time.Second
)

var held, heldWaiting atomic.Int64

// Reader reads the beginning of a body into memory, until [Reader.Pass], and then the rest.
type Reader struct {
	io.ReadCloser

	until time.Time
	all   *atomic.Int64 // of which this is a part
	most  int64
	read  int64
	held  atomic.Int64
	pass  bool
}

// New returns a Reader of body, which must be closed.
func New(body io.ReadCloser) *Reader {
	return &Reader{ReadCloser: body, until: time.Now().Add(Patience), all: &held, most: most}
}

// NewHeld returns a Reader of the body of a request that is going to wait.
func NewHeld(body io.ReadCloser) *Reader {
	r := New(body)
	r.all, r.most = &heldWaiting, mostHeld
	return r
}

// Pass ends the part that is held in memory: the next Read comes when that has been passed on.
func (r *Reader) Pass() { r.pass = true }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.pass {
		r.Release()
		return r.ReadCloser.Read(p)
	}
	counted := max(r.read+int64(len(p))-max(r.read, free), 0)
	if r.all.Add(counted) > r.most || time.Now().After(r.until) {
		r.all.Add(-counted)
		return 0, ErrFull
	}
	n, err := r.ReadCloser.Read(p)
	unused := min(int64(len(p)-n), counted)
	r.all.Add(-unused)
	r.held.Add(counted - unused)
	r.read += int64(n)
	return n, err
}

// Close implements io.Closer, and releases the body.
func (r *Reader) Close() error {
	r.Release()
	return r.ReadCloser.Close()
}

// Release says that nothing of the body is held any longer.
func (r *Reader) Release() { r.all.Add(-r.held.Swap(0)) }
