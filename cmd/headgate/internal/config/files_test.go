package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files and symbolic links (text "-> TARGET") below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	at := t.TempDir()
	for name, text := range files {
		name = filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(name, []byte(text), 0o644) }
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			write = func() error { return os.Symlink(target, name) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func below(t *testing.T, at string, names []string) []string {
	t.Helper()
	short := make([]string, len(names))
	for i, name := range names {
		relative, err := filepath.Rel(at, name)
		if err != nil {
			t.Fatal(err)
		}
		short[i] = relative
	}
	return short
}

const oneRule, otherRule = "rules: [{name: a, limits: 5/m}]\n", "rules: [{name: b, limits: 5/m}]\n"

func TestDirectory(t *testing.T) {
	at := tree(t, map[string]string{
		"b.yml": otherRule, "a.yaml": oneRule, "notes.txt": "no", ".hidden.yaml": "no",
		"below/c.yaml": "no",
	})
	c, err := Load([]string{at, filepath.Join(at, "a.yaml")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := below(t, at, c.Files), []string{"a.yaml", "b.yml"}; !slices.Equal(got, want) {
		t.Errorf("files %v; want %v", got, want)
	}
	if len(c.Rules) != 2 || c.Rules[0].Name != "a" || c.Rules[1].Name != "b" {
		t.Errorf("rules %v", c.Rules)
	}
}

// TestConfigMapIsReadOnce has the files of a mounted ConfigMap, which envoyproxy/ratelimit reads
// twice.
func TestConfigMapIsReadOnce(t *testing.T) {
	at := tree(t, map[string]string{
		"..2026/edge.yaml": "domain: d\n", "..data": "-> ..2026", "edge.yaml": "-> ..data/edge.yaml",
	})
	for _, c := range []struct {
		paths []string
		o     Options
	}{
		{[]string{at}, Options{}},
		{nil, Options{Runtime: &Runtime{Root: at}}},
		{nil, Options{Runtime: &Runtime{
			Root: filepath.Dir(at), Subdirectory: filepath.Base(at), AppDirectory: "config",
		}}},
	} {
		config, err := Load(c.paths, c.o)
		if err != nil {
			t.Error(err)
			continue
		}
		got := below(t, at, config.Files)
		if len(config.Domains) != 1 || !slices.Equal(got, []string{"edge.yaml"}) {
			t.Errorf("files %v, domains %v", got, config.Domains)
		}
	}
}

func TestRuntimeDirectories(t *testing.T) {
	files := map[string]string{
		"sub/config/a.yaml": "domain: a\n", "sub/config/deep/b": "domain: b\n",
		"sub/config/.c.yaml": "no", "sub/d.yaml": "domain: d\n", "sub/config.e.yaml": "domain: e\n",
		"other/config.f.yaml": "domain: f\n", "other/g.yaml": "domain: g\n", "empty/.keep": "no",
	}
	at := tree(t, files)
	for _, c := range []struct {
		runtime Runtime
		want    []string
	}{
		{Runtime{Subdirectory: "sub", AppDirectory: "config"}, []string{"a", "b"}},
		{Runtime{Subdirectory: "sub", AppDirectory: "config", WatchRoot: true}, []string{"a", "b"}},
		{Runtime{Subdirectory: "sub"}, []string{"e", "a", "b", "d"}},
		{Runtime{Subdirectory: "other", AppDirectory: "config"}, []string{"f", "g"}},
		{Runtime{Subdirectory: "other", AppDirectory: "config", WatchRoot: true}, []string{"f"}},
		{Runtime{Subdirectory: "empty", AppDirectory: "config"}, nil},
	} {
		c.runtime.Root = at
		config, err := Load(nil, Options{Runtime: &c.runtime})
		if err != nil {
			t.Errorf("%+v: %v", c.runtime, err)
			continue
		}
		var got []string
		for _, d := range config.Domains {
			got = append(got, d.Name)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: domains %v; want %v", c.runtime, got, c.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	at := tree(t, map[string]string{"empty/.keep": ""})
	_, err := Load([]string{filepath.Join(at, "none.yaml"), filepath.Join(at, "empty")}, Options{
		Runtime: &Runtime{Root: filepath.Join(at, "gone")},
	})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.ReplaceAll(err.Error(), at+"/", "")
	const want = `none.yaml: cannot be read: no such file or directory; want a file or a directory
empty: has no rules files; want *.yaml or *.yml in it
gone: cannot be read: no such file or directory; want a directory, by RUNTIME_ROOT, ` +
		`RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFilesAddUp(t *testing.T) {
	at := tree(t, map[string]string{
		"1.yaml": "store: memory\ntrust: 10.0.0.0/8\nlisten: {http: ':80'}\n" + oneRule,
		"2.yaml": "when_store_fails: open\ntrust: 192.0.2.1\nlisten: {grpc: ':81'}\n" +
			"overrides: [{rule: a, key: all, ban: true}]\napi: {tokens: [t]}\n",
		"3.yaml": "domain: d\n",
	})
	c, err := Load([]string{at}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Store != "memory" || c.WhenStoreFails != Open || len(c.Trust) != 2 || len(c.Rules) != 1 ||
		(c.Listen != Listen{HTTP: ":80", GRPC: ":81"}) || len(c.Overrides) != 1 || len(c.Domains) != 1 {
		t.Errorf("together %+v", c)
	}
}

func TestFilesThatContradict(t *testing.T) {
	at := tree(t, map[string]string{
		"1.yaml": "store: memory\nlisten: {http: ':80', grpc: no}\n" + oneRule,
		"2.yaml": "listen:\n  http: 80\n  grpc: ':81'\nstore: memory\n" + oneRule +
			"domains: [{domain: d}]\n",
		"3.yaml": "domain: d\n",
	})
	_, err := Load([]string{at}, Options{})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.ReplaceAll(err.Error(), at+"/", "")
	const want = `1.yaml:2: listen.grpc: "no" is not an address; want HOST:PORT, :PORT or off
2.yaml:2: listen.http: is also given at 1.yaml:2; want it in one file
2.yaml:2: listen.http: is the number 80; want text
2.yaml:3: listen.grpc: is also given at 1.yaml:2; want it in one file
2.yaml:4: store: is also given at 1.yaml:1; want it in one file
2.yaml:5: rules[0].name: "a" is also the name of the rule at 1.yaml:3; want another
3.yaml:1: duplicate domain 'd' in config file`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Load([]string{filepath.Join(at, "3.yaml")}, Options{}); err != nil {
		t.Error(err)
	}
}

// TestHash says when files are the same.
func TestHash(t *testing.T) {
	at := tree(t, map[string]string{"a.yaml": oneRule, "b.txt": "1"})
	paths := []string{at}
	c, err := Load(paths, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Hash(paths, Options{}) != c.Hash {
		t.Error("another hash than that of Load")
	}
	if Hash([]string{tree(t, map[string]string{"a.yaml": oneRule})}, Options{}) != c.Hash {
		t.Error("another hash because of another directory")
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("b.txt", "2")
	if Hash(paths, Options{}) != c.Hash {
		t.Error("another hash because of a file that is not read")
	}
	write("b.yaml", otherRule)
	if Hash(paths, Options{}) == c.Hash {
		t.Error("the same hash with another file")
	}
	gone := []string{filepath.Join(at, "none")}
	if h := Hash(gone, Options{}); h == c.Hash || h != Hash(gone, Options{}) {
		t.Error("the hash of an error is not that of the error")
	}
}

// A file that is not regular is refused, because it may never end; a link to a regular one is read.
func TestIrregularFiles(t *testing.T) {
	at := tree(t, map[string]string{
		"a.yaml": "-> ..data/a.yaml", "..data/a.yaml": oneRule, "pipe.yaml": "-> " + os.DevNull,
	})
	_, err := Load([]string{at}, Options{})
	want := filepath.Join(at, "pipe.yaml") + ": cannot be read: it is not a regular file"
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	if c, err := Load([]string{filepath.Join(at, "a.yaml")}, Options{}); err != nil || len(c.Rules) != 1 {
		t.Error(c, err)
	}
}

// A file that is far too large, such as a log, is refused before it fills the memory.
func TestLargeFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 20<<30)); err != nil {
		t.Fatal(err)
	}
	_, err := Load([]string{file}, Options{})
	if want := file + ": cannot be read: it has more than 32 MiB"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
