// Package memoryfile keeps what a store in memory holds in a file, so that it survives a restart.
//
// The file is JSON, compressed by gzip, whose checksum detects damage: a header with the overrides,
// and then the state of each key.
package memoryfile

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
)

// version is that of the file.
const version = 1

// maxKeys is how many keys the file has, each counted once for each limit.
const maxKeys = 1 << 20

// File keeps a Memory in a file. It knows the keys, which the Memory itself does not keep.
type File struct {
	memory *headgate.Memory
	path   string

	saving sync.Mutex

	mu   sync.Mutex
	keys map[slot]struct{} // that may have state
}

type slot struct {
	limit headgate.Limit
	key   string
}

// New returns the file at path of m, which must be empty. What is there and is no file, such as a
// directory, is an error, because Save and Load rename the path.
func New(m *headgate.Memory, path string) (*File, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("memory file %q: is %s; want a regular file", path, info.Mode())
	}
	return &File{memory: m, path: path, keys: map[slot]struct{}{}}, nil
}

// Decided notes a key that may have state from now on: see [observe.Observer].
func (f *File) Decided(_ context.Context, e observe.Event) {
	if e.Request.Cost > 0 {
		f.note(slot{e.Request.Limit, e.Request.Key})
	}
}

func (f *File) note(k slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) < maxKeys {
		f.keys[k] = struct{}{}
	}
}

type header struct {
	Version   int               `json:"headgate_memory"`
	Overrides map[string]string `json:"overrides,omitempty"`
}

type entry struct {
	Limit string  `json:"limit"`
	Key   []byte  `json:"key"`
	State []int64 `json:"state"`
}

// Save writes the file: after a failure, the one of before is still there.
func (f *File) Save(overrides map[string]string) error {
	f.saving.Lock() // the server may stop during a slow write
	defer f.saving.Unlock()
	// Another process may write, too: its file must not be this one.
	to, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(to.Name()) }()     // after a failure
	z, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // fails only for another level
	err = f.write(json.NewEncoder(z), overrides)
	if err = errors.Join(err, z.Close(), to.Sync(), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), f.path)
}

// write writes the state of all keys, and forgets those that are in their initial state.
func (f *File) write(to *json.Encoder, overrides map[string]string) error {
	err := to.Encode(header{version, overrides})
	f.mu.Lock()
	keys := f.keys
	f.keys = make(map[slot]struct{}, len(keys))
	f.mu.Unlock()
	for k := range keys {
		state := f.memory.State(k.key, k.limit)
		if state == nil {
			continue
		}
		f.note(k) // also after a failure
		if err == nil {
			err = to.Encode(entry{k.limit.String(), []byte(k.key), state})
		}
	}
	return err
}

// Load reads the file, if there is one, and returns the overrides. A file that cannot be used is
// renamed, and then the store is empty.
func (f *File) Load() (overrides map[string]string, err error) {
	cut, _ := filepath.Glob(f.path + ".tmp*") // of a killed process
	for _, name := range cut {
		_ = os.Remove(name)
	}
	overrides, err = f.read()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return overrides, nil
	}
	for k := range f.keys {
		_ = f.memory.Reset(context.Background(), k.key, k.limit) // fails for wrong limits only
	}
	refused := f.path + ".refused"
	return nil, errors.Join(fmt.Errorf("memory file %s: damaged, or not of version %d: %w; "+
		"it is now %s, and the store is empty", f.path, version, err, refused),
		os.Rename(f.path, refused))
}

func (f *File) read() (overrides map[string]string, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	from, h := json.NewDecoder(z), header{}
	if err = from.Decode(&h); err == nil && h.Version != version {
		err = fmt.Errorf("it is of version %d", h.Version)
	}
	for err == nil {
		var e entry
		if err = from.Decode(&e); err == nil {
			err = f.restore(&e)
		}
	}
	if errors.Is(err, io.EOF) && h.Version == version {
		return h.Overrides, nil
	}
	return nil, err
}

func (f *File) restore(e *entry) error {
	limit, err := headgate.ParseLimit(e.Limit)
	if err != nil {
		return err
	}
	f.note(slot{limit, string(e.Key)})
	return f.memory.SetState(string(e.Key), limit, e.State)
}
