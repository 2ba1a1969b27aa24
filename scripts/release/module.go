package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
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
	requires []string // modules of this repository
}

// tag returns the tag that gives the module a version: v0.1.0 or otellimit/v0.1.0.
func (m module) tag(version string) string {
	return filepath.ToSlash(filepath.Join(m.name, version))
}

func (m module) isCommand() bool { return m.path == root+"/cmd/headgate" }

// published returns the modules of go.work that are published, those that require fewer of the
// others first. If a module came before one that it requires, go mod tidy would not find the tag.
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
