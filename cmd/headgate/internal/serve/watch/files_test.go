package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watchFile runs a Watcher over a file, and returns a channel of the contents that it loads.
func watchFile(t *testing.T, name string, directories ...string) <-chan string {
	t.Helper()
	read := func() string {
		text, _ := os.ReadFile(name)
		return string(text)
	}
	loaded, watched := make(chan string, 16), make(chan struct{})
	w := New(Options{
		Directories: func() []string {
			defer func() { watched <- struct{}{} }()
			return directories
		},
		Hash:   read,
		Load:   func() error { loaded <- read(); return nil },
		Report: func(error) {},
		Loaded: read(),
	})
	w.poll = time.Hour // an event must come
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	<-watched
	go func() {
		for range watched { // until the test ends
		}
	}()
	t.Cleanup(func() { cancel(); <-ended; close(watched) })
	return loaded
}

func wantLoad(t *testing.T, loaded <-chan string, want string) {
	t.Helper()
	for got := ""; got == ""; { // a busy machine may read a file that is not written yet
		select {
		case got = <-loaded:
			if got != want && got != "" {
				t.Errorf("loaded %q; want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q was not loaded", want)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// TestConfigMap changes files as Kubernetes does: by one symbolic link.
func TestConfigMap(t *testing.T) {
	at := t.TempDir()
	write(t, filepath.Join(at, "..1", "rules.yaml"), "one")
	link(t, "..1", filepath.Join(at, "..data"))
	link(t, "..data/rules.yaml", filepath.Join(at, "rules.yaml"))
	loaded := watchFile(t, filepath.Join(at, "rules.yaml"), at)
	for _, next := range []string{"..2", "..3"} {
		write(t, filepath.Join(at, next, "rules.yaml"), next)
		link(t, next, filepath.Join(at, "..data"))
		wantLoad(t, loaded, next)
	}
}

// TestReplacedDirectory changes files as deployments of envoyproxy/ratelimit do: the root is a
// symbolic link to another directory. A file that then changes in that directory is seen, too.
func TestReplacedDirectory(t *testing.T) {
	at := t.TempDir()
	current := filepath.Join(at, "current")
	write(t, filepath.Join(at, "one", "rules.yaml"), "one")
	link(t, "one", current)
	loaded := watchFile(t, filepath.Join(current, "rules.yaml"), at, current)
	write(t, filepath.Join(at, "two", "rules.yaml"), "two")
	link(t, "two", current)
	wantLoad(t, loaded, "two")
	write(t, filepath.Join(at, "two", "rules.yaml"), "three")
	wantLoad(t, loaded, "three")
}

// TestReplacedFile changes a file as editors do.
func TestReplacedFile(t *testing.T) {
	at := t.TempDir()
	name := filepath.Join(at, "rules.yaml")
	write(t, name, "one")
	loaded := watchFile(t, name, at)
	write(t, name, "")
	write(t, name, "two")
	wantLoad(t, loaded, "two")
	write(t, name+"~", "three")
	if err := os.Rename(name+"~", name); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, loaded, "three")
}
