package main

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// root is the path of the library.
const root = "github.com/headgate/headgate"

// unpublished are the modules of go.work that nobody imports: tests, measurements, examples.
var unpublished = []string{"bench", "e2e", "examples"}

// module is a module that is published.
type module struct {
	path     string
	name     string // its directory in the repository
	dir      string
	nested   []string // directories of other modules in it
	requires []string // modules of this repository
}

func (m module) isCommand() bool { return m.path == root+"/cmd/headgate" }

// published returns the modules of go.work that are published, each after those that it requires.
func published(tree string) ([]module, error) {
	text, err := output(tree, nil, "go", "work", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var work struct {
		Use []struct {
			DiskPath string `json:"DiskPath"`
		} `json:"Use"`
	}
	if err := json.Unmarshal([]byte(text), &work); err != nil {
		return nil, err
	}
	var modules []module
	for _, use := range work.Use {
		m, err := read(tree, filepath.Clean(use.DiskPath))
		if err != nil {
			return nil, err
		}
		for _, other := range work.Use {
			inside, err := filepath.Rel(m.name, filepath.Clean(other.DiskPath))
			if err == nil && inside != "." && !strings.HasPrefix(inside, "..") {
				m.nested = append(m.nested, filepath.ToSlash(inside)+"/")
			}
		}
		isOther := func(part string) bool { return slices.Contains(unpublished, part) }
		if !slices.ContainsFunc(strings.Split(filepath.ToSlash(m.name), "/"), isOther) {
			modules = append(modules, m)
		}
	}
	slices.SortStableFunc(modules, func(a, b module) int {
		return len(a.requires) - len(b.requires)
	})
	return modules, nil
}

// read reads the go.mod of a module.
func read(tree, name string) (module, error) {
	m := module{name: name, dir: filepath.Join(tree, name)}
	text, err := output(m.dir, nil, "go", "mod", "edit", "-json")
	if err != nil {
		return m, err
	}
	var file struct {
		Module struct {
			Path string `json:"Path"`
		} `json:"Module"`
		Require []struct {
			Path string `json:"Path"`
		} `json:"Require"`
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return m, err
	}
	m.path = file.Module.Path
	for _, r := range file.Require {
		if r.Path == root || strings.HasPrefix(r.Path, root+"/") {
			m.requires = append(m.requires, r.Path)
		}
	}
	return m, nil
}

// serve writes the files of the module that a module proxy serves. See
// https://go.dev/ref/mod#goproxy-protocol.
func (m module) serve(proxy, version string) error {
	dir := filepath.Join(proxy, filepath.FromSlash(m.path), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": info, version + ".mod": file,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip")) //nolint:gosec,nolintlint // ours
	if err != nil {
		return err
	}
	defer archive.Close()
	return m.pack(zip.NewWriter(archive), m.path+"@"+version+"/")
}

// pack writes what git knows of the module, without the modules in it.
func (m module) pack(w *zip.Writer, prefix string) error {
	names, err := output(m.dir, nil, "git", "ls-files")
	if err != nil {
		return err
	}
	for name := range strings.Lines(names) {
		name = strings.TrimSpace(name)
		isNested := func(dir string) bool { return strings.HasPrefix(name, dir) }
		if slices.ContainsFunc(m.nested, isNested) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		entry, err := w.Create(prefix + name)
		if err != nil {
			return err
		}
		if _, err := entry.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}
