package usage

import (
	"compress/gzip"
	"errors"
	"io"
	"sync/atomic"
)

// unzip decompresses what is pushed into it, in constant memory.
type unzip struct {
	in     *io.PipeWriter
	pushed atomic.Int64 // bytes
	done   chan error   // gets nil if all was decompressed
}

// What is pushed may unfold to unzipFree bytes, and to unzipRatio times its size. JSON shrinks to a
// tenth, a stream of short events to a fiftieth, and a bomb to a thousandth.
const (
	unzipFree  = 1 << 20
	unzipRatio = 100
)

// newUnzip decompresses for to, which nothing else may use until close.
func newUnzip(to *reader) *unzip {
	from, in := io.Pipe()
	u := &unzip{in: in, done: make(chan error, 1)}
	go func() {
		err := u.inflate(to, from)
		_ = from.Close() // what is pushed later is dropped
		u.done <- err
	}()
	return u
}

func (u *unzip) push(p []byte) {
	u.pushed.Add(int64(len(p)))
	_, _ = u.in.Write(p) // an error is in done, too
}

// close ends what is pushed, and reports whether all of it was decompressed.
func (u *unzip) close() bool {
	_ = u.in.Close()
	return <-u.done == nil
}

func (u *unzip) inflate(to *reader, from io.Reader) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	var part [8 << 10]byte
	for out := int64(0); out <= unzipFree+unzipRatio*u.pushed.Load(); {
		n, err := z.Read(part[:])
		to.push(part[:n])
		out += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("usage: the answer unfolds to too much")
}
