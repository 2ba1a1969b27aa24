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
	return s.opened.Read(b)
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
	if bytes.HasPrefix(magic, []byte(gzipMagic)) {
		s.opened = &members{raw: s.raw}
	} else {
		s.opened = s.raw
	}
	return nil
}

// members reads gzip data member by member. gzip.Reader by itself would take anything after the
// last member for another one that was cut off.
type members struct {
	raw  *bufio.Reader
	zip  *gzip.Reader // nil before the first member
	rest bool         // the next member has not begun
}

func (m *members) Read(b []byte) (int, error) {
	if m.zip == nil || m.rest {
		if err := m.begin(); err != nil {
			return 0, err
		}
	}
	n, err := m.zip.Read(b)
	if errors.Is(err, io.EOF) {
		m.rest, err = true, nil
	}
	return n, inWords(err)
}

// begin begins the next member. It returns io.EOF if there is none.
func (m *members) begin() error {
	magic, err := m.raw.Peek(len(gzipMagic))
	switch {
	case len(magic) == 0 || err != nil && !errors.Is(err, io.EOF):
		return err
	case string(magic) != gzipMagic:
		return errors.New("the gzip data is followed by something else")
	case m.zip == nil:
		m.zip, err = gzip.NewReader(m.raw)
	default:
		err = m.zip.Reset(m.raw)
	}
	if err != nil {
		return inWords(err)
	}
	m.zip.Multistream(false)
	m.rest = false
	return nil
}

// inWords returns an error of the gzip reader in plain words.
func inWords(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the gzip data ends too soon; the file has been cut off")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("the gzip data is damaged: its header is wrong")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the gzip data is damaged: its checksum is wrong")
	}
	return err
}
