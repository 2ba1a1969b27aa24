package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// stored reads a log that is plain, or gzip with any number of members.
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

const gzipMagic = "\x1f\x8b"

// foreign are compressed formats that are detected but not read.
var foreign = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"BZh91A", "bzip2"}, // at its default level; BZh alone may begin a host's name
	{"\xfd7zXZ\x00", "xz"},
	{"\x04\x22\x4d\x18", "lz4"},
	{"PK\x03\x04", "zip"},
}

func (s *stored) open() error {
	magic, err := s.raw.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, f := range foreign {
		if bytes.HasPrefix(magic, []byte(f.magic)) {
			return errors.New("is " + f.name + "; decompress it first")
		}
	}
	if !bytes.HasPrefix(magic, []byte(gzipMagic)) {
		s.opened = s.raw
		return nil
	}
	zip, err := gzip.NewReader(s.raw)
	if err != nil {
		return inWords(err)
	}
	s.opened = zip
	return nil
}

// inWords returns an error of the gzip reader in plain words. The reader takes anything after the
// last member for another one.
func inWords(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the gzip data has been cut off, or is followed by something else")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("the gzip data is damaged, or is followed by something else")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the gzip data is damaged: its checksum is wrong")
	}
	return err
}
