package replay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	lineBuffer  = 256 << 10
	longestLine = 1 << 20 // a longer line is skipped, never held
)

// errTooLong is the error of [lines.next] for a line that was skipped.
var errTooLong = errors.New(whyTooLong)

// lines splits a stream into lines. Its memory is bounded by longestLine.
type lines struct {
	r      *bufio.Reader
	long   []byte // a line that is longer than the buffer of r
	number int64
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, lineBuffer)} }

// next returns the next line without its end, valid until the next call. After the last, it
// returns io.EOF or the error of r.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.longLine(line)
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	l.number++
	line = without(line, '\n')
	if len(line) > longestLine {
		return nil, errTooLong
	}
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return without(line, '\r'), nil
}

// without removes a last byte c.
func without(line []byte, c byte) []byte {
	if n := len(line) - 1; n >= 0 && line[n] == c {
		return line[:n]
	}
	return line
}

// longLine returns the line that begins with part, or more than longestLine of it.
func (l *lines) longLine(part []byte) ([]byte, error) {
	l.long = append(l.long[:0], part...)
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long) <= longestLine {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, err
		}
	}
}
