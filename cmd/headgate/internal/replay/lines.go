package replay

import (
	"bytes"
	"errors"
	"io"
)

const (
	firstBuffer = 256 << 10
	longestLine = 1 << 20 // a longer line is skipped, never held
)

// errTooLong is the error of [lines.next] for a line that was skipped.
var errTooLong = errors.New(whyTooLong)

// lines splits a stream into lines. Its memory is bounded by longestLine.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int // buf[start:end] is read and not yet returned
	number     int64
	err        error // from r
}

func newLines(r io.Reader) *lines { return &lines{r: r, buf: make([]byte, firstBuffer)} }

// next returns the next line without its end, valid until the next call. After the last, it
// returns io.EOF or the error of r.
func (l *lines) next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+searched:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.start+searched+i]
			l.start += searched + i + 1
			return l.returned(line)
		}
		searched = l.end - l.start
		switch {
		case searched > longestLine:
			return nil, l.discard()
		case l.err == nil:
			l.fill()
		case searched > 0 && errors.Is(l.err, io.EOF):
			line := l.buf[l.start:l.end]
			l.start = l.end
			return l.returned(line)
		default:
			return nil, l.err
		}
	}
}

func (l *lines) returned(line []byte) ([]byte, error) {
	l.number++
	if len(line) > longestLine {
		return nil, errTooLong
	}
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, nil
}

// fill reads more, making room first.
func (l *lines) fill() {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if l.end == len(l.buf) {
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	for range 100 {
		var n int
		n, l.err = l.r.Read(l.buf[l.end:])
		l.end += n
		if n > 0 || l.err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// discard drops a line that is too long, and reads on to its end.
func (l *lines) discard() error {
	for {
		if i := bytes.IndexByte(l.buf[l.start:l.end], '\n'); i >= 0 {
			l.start += i + 1
			break
		}
		l.start, l.end = 0, 0
		if l.err != nil {
			if errors.Is(l.err, io.EOF) {
				break
			}
			return l.err
		}
		l.fill()
	}
	l.number++
	return errTooLong
}
