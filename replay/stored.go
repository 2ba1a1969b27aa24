package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// stored reads a log as it is stored: gzip, of any number of members, or plain.
type stored struct {
	raw    *bufio.Reader
	opened io.Reader // nil before the first Read
}

func newStored(r io.Reader) *stored { return &stored{raw: bufio.NewReaderSize(r, 64<<10)} }

func (s *stored) Read(b []byte) (int, error) {
	if s.opened == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	n, err := s.opened.Read(b)
	return n, inWords(err)
}

func (s *stored) open() error {
	s.opened = s.raw
	magic, err := s.raw.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		s.opened, err = gzip.NewReader(s.raw)
		return inWords(err)
	}
	return nil
}

// inWords says what an error of the gzip reader means for the file.
func inWords(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the gzip data ends too soon; the file has been cut off")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("the gzip data is followed by something else, or damaged")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the gzip data is damaged: its checksum is wrong")
	}
	return err
}
