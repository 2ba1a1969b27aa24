// Package regular reads regular files.
package regular

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSize is far above what rules and certificates need.
const maxSize = 32 << 20

// Read reads a file that is, or links to, a regular one. Another kind, such as a named pipe, is an
// error: reading it may never end. So is a file of more than 32 MiB.
func Read(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		err := errors.New("it is not a regular file")
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxSize)+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(f, maxSize+1))
	text := b.Bytes()
	if len(text) > maxSize {
		err := errors.New("it has more than 32 MiB")
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return text, err
}
