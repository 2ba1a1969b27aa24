// Package regular reads regular files.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read reads a file that is, or links to, a regular one. Another kind, such as a named pipe, is an
// error: reading it may never end.
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
	return io.ReadAll(f)
}
