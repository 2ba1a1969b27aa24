// Package watch loads files again when they change.
//
// It compares their contents every second, and needs no events of the file system: editors and
// Kubernetes replace files, a ConfigMap is changed by one symbolic link, and network file systems
// do not report changes.
package watch

import (
	"context"
	"os"
	"sync"
	"time"
)

// Options of a Watcher. The functions are called one at a time.
type Options struct {
	Hash   func() string // of the files' contents as they are now
	Load   func() error  // reads the files and uses them, or keeps what is in use
	Report func(error)   // gets the error of each Load, or nil

	Requests <-chan os.Signal // each one loads as Reload does; nil: none

	Loaded string // the hash of what is in use; empty: none
}

// interval is the time between comparisons. A change is loaded when two comparisons in a row find
// the same contents, because a file that still changes may be half written. Files that change all
// the time are loaded by the third comparison.
const interval = time.Second

// Watcher loads files again when they change.
type Watcher struct {
	o Options

	mu      sync.Mutex
	loaded  string // the hash of the files that were last loaded, with success or not
	last    string // what the last comparison found
	changes int    // how many comparisons in a row have found other files than those loaded
}

// New returns a Watcher, which does nothing before [Watcher.Run].
func New(o Options) *Watcher { return &Watcher{o: o, loaded: o.Loaded, last: o.Loaded} }

// Run compares the files, and serves requests, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.o.Requests:
			_ = w.Reload() // which reports it
		case <-tick.C:
			w.compare()
		}
	}
}

// Reload loads the files now, also if they did not change, and returns the error of Load.
func (w *Watcher) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = w.o.Hash()
	return w.load()
}

func (w *Watcher) load() error {
	w.changes = 0
	err := w.o.Load()
	w.o.Report(err)
	return err
}

// compare loads the files if they differ from those loaded last, and have not changed since the
// last comparison, or change all the time. So an error in files that do not change is reported
// once.
func (w *Watcher) compare() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Hash()
	w.changes++
	if now == w.loaded {
		w.changes = 0
	} else if now == w.last || w.changes == 3 {
		w.loaded = now
		_ = w.load() // which reports it
	}
	w.last = now
}
