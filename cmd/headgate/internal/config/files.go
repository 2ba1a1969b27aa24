package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/regular"
)

// file is a file that was read.
type file struct {
	name string
	text []byte
}

// Runtime is the layout of envoyproxy/ratelimit, named as its RUNTIME_ environment names.
type Runtime struct {
	Root         string
	Subdirectory string
	AppDirectory string
	WatchRoot    bool // Root is a symbolic link that is replaced as a whole
}

// directory returns the directory of the files, and the beginning of the file names that count.
// It is Root/Subdirectory/AppDirectory. Without one, it is Root/Subdirectory, where upstream reads
// the files named config.* if it watches the root, and else all of them.
func (r *Runtime) directory() (at, prefix string) {
	parent := filepath.Join(r.Root, r.Subdirectory)
	at = filepath.Join(parent, r.AppDirectory)
	if info, err := os.Stat(at); at == parent || err == nil && info.IsDir() {
		return at, ""
	}
	if r.WatchRoot {
		return parent, "config."
	}
	return parent, ""
}

// find returns the names of the files at paths and in the directories of runtime.
func find(paths []string, runtime *Runtime) (names []string, err error) {
	var faults []error
	for _, path := range paths {
		found, err := findAt(path)
		if err != nil {
			faults = append(faults, err)
		}
		names = append(names, found...)
	}
	if runtime != nil {
		found, err := runtime.find()
		if err != nil {
			faults = append(faults, err)
		}
		names = append(names, found...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return unique(names), nil
}

// findAt returns path if it is a file, or else the names of the YAML files in the directory.
func findAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w; want a file or a directory", path,
			cause(err))
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, cause(err))
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		extension := filepath.Ext(name)
		if !hidden(name) && (extension == ".yaml" || extension == ".yml") && !isDirectory(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: has no rules files; want *.yaml or *.yml in it", path)
	}
	return names, nil
}

// find returns the files in and below the directory of r, whatever their extension: upstream
// reads them all. An empty directory is no error, as upstream has it.
func (r *Runtime) find() (names []string, err error) {
	at, prefix := r.directory()
	slashed := at + string(filepath.Separator) // so that a symbolic link is followed
	err = filepath.WalkDir(slashed, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case filepath.Clean(name) == filepath.Clean(at):
			return nil
		case hidden(name) && e.IsDir():
			return filepath.SkipDir
		case hidden(name) || e.IsDir() || isDirectory(name):
			return nil
		}
		if strings.HasPrefix(dotted(at, name), prefix) {
			names = append(names, filepath.Clean(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w; want a directory, by RUNTIME_ROOT, "+
			"RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY", at, cause(err))
	}
	return names, nil
}

// dotted returns the name of a file below a directory as upstream's runtime spells it.
func dotted(directory, name string) string {
	relative, err := filepath.Rel(directory, name)
	if err != nil {
		return name
	}
	return strings.ReplaceAll(filepath.ToSlash(relative), "/", ".")
}

// hidden reports whether the last part of name begins with a dot, as the ..data of a ConfigMap,
// whose files are linked from names without one.
func hidden(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// unique returns names without those that were there before, as a file in a directory that was
// named twice.
func unique(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		clean := filepath.Clean(name)
		again := seen[clean]
		seen[clean] = true
		return again
	})
}

// readAll reads the files at paths and in o.Runtime.
func readAll(paths []string, o Options) ([]file, error) {
	names, err := find(paths, o.Runtime)
	if err != nil {
		return nil, err
	}
	return read(names)
}

func read(names []string) ([]file, error) {
	var faults []error
	files := make([]file, 0, len(names))
	for _, name := range names {
		text, err := regular.Read(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: cannot be read: %w", name, cause(err)))
		}
		files = append(files, file{name, text})
	}
	return files, errors.Join(faults...)
}

// cause returns err without the path, which its message already has.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// hash does not depend on the directories: instances may have the same files at different places.
func hash(files []file) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", filepath.Base(f.name), len(f.text))
		h.Write(f.text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Hash returns the hash of the files at paths and in o.Runtime. If they cannot be read, it is the
// hash of the error.
func Hash(paths []string, o Options) string {
	files, err := readAll(paths, o)
	if err != nil {
		return hash([]file{{"error", []byte(err.Error())}})
	}
	return hash(files)
}
