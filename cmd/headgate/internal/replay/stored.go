package replay

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// stored reads a log that is plain, or compressed by gzip or bzip2.
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

// foreign are forms of a log that are detected but not read, and what reads them.
var foreign = []struct {
	at                 int
	magic, name, reads string
}{
	{0, "\x28\xb5\x2f\xfd", "zstd", "zstdcat FILE | headgate replay -"},
	{0, "\xfd7zXZ\x00", "xz", "xzcat FILE | headgate replay -"},
	{0, "\x04\x22\x4d\x18", "lz4", "lz4 -dc FILE | headgate replay -"},
	{0, "PK\x03\x04", "zip", "unzip -d x FILE, and give the files in x"},
	{0, "\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE | headgate replay -"},
	{0, "\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE | headgate replay -"},
	{257, "ustar", "tar", "mkdir x && tar -xf FILE -C x, and give the files in x"},
}

const (
	gzipMagic  = "\x1f\x8b"
	bzip2Magic = "1AY&SY" // after BZh and a digit
)

func (s *stored) open() error {
	begin, err := s.raw.Peek(262)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(begin, []byte(gzipMagic)):
		unpacked, err := gzip.NewReader(s.raw)
		if err != nil {
			return inWords(err)
		}
		s.raw = bufio.NewReaderSize(unpacked, 64<<10)
	case len(begin) > 9 && string(begin[:3]) == "BZh" && string(begin[4:10]) == bzip2Magic:
		s.raw = bufio.NewReaderSize(bzip2.NewReader(s.raw), 64<<10)
	}
	begin, _ = s.raw.Peek(262) // an error comes again
	for _, f := range foreign {
		if rest := begin[min(f.at, len(begin)):]; bytes.HasPrefix(rest, []byte(f.magic)) {
			return fmt.Errorf("is %s; type %s", f.name, f.reads)
		}
	}
	s.opened = s.raw
	return nil
}

// inWords returns an error of decompression in plain words. The reader of gzip takes anything after
// the last member for another one.
func inWords(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the compressed data has been cut off, or is followed by something else")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("the compressed data is damaged, or is followed by something else")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the compressed data is damaged: its checksum is wrong")
	}
	if _, ok := errors.AsType[bzip2.StructuralError](err); ok {
		return errors.New("the compressed data is damaged or cut off")
	}
	return err
}
