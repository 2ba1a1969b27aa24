// Package watch loads files again when they change.
//
// It watches directories, not files: editors and Kubernetes replace files, and a ConfigMap is
// changed by one symbolic link, ..data. A watch can miss changes, as on network file systems, and
// the system may have no watches left. So the files are also compared regularly.
package watch

import (
	"context"
	"os"
	"sync"
	"time"
)

// Options of a Watcher. The functions are called one at a time.
type Options struct {
	Directories func() []string // where a change may be a change of the files
	Hash        func() string   // of the files' contents as they are now
	Load        func() error    // reads the files and uses them, or keeps what is in use
	Report      func(error)     // gets the error of each Load, or nil

	Requests <-chan os.Signal // each one loads as Reload does; nil: none

	Loaded string // the hash of what is in use; empty: none
}

const (
	debounce = 200 * time.Millisecond // after the last event: the file may be half written
	patience = time.Second            // after the first event, while events never end
)

// Watcher loads files again when they change.
type Watcher struct {
	o    Options
	poll time.Duration // between comparisons without an event

	mu     sync.Mutex
	loaded string // the hash of the files that were last loaded, with success or not
}

// New returns a Watcher, which does nothing before [Watcher.Run].
func New(o Options) *Watcher { return &Watcher{o: o, poll: 10 * time.Second, loaded: o.Loaded} }

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	n := newNotifier()
	defer n.close()
	n.watch(w.o.Directories())
	n.notify() // of what changed before
	w.loop(ctx, n.events, w.o.Requests, func() { n.watch(w.o.Directories()) })
}

// Reload loads the files now, also if they did not change, and returns the error of Load.
func (w *Watcher) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = w.o.Hash()
	return w.load()
}

func (w *Watcher) load() error {
	err := w.o.Load()
	w.o.Report(err)
	return err
}

// loop loads after events and requests, and if a comparison finds a change. Before each comparison,
// it calls follow, because a directory may have been replaced.
func (w *Watcher) loop(
	ctx context.Context, events <-chan struct{}, requests <-chan os.Signal, follow func(),
) {
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	settled := time.NewTimer(0)
	<-settled.C
	defer settled.Stop()
	var first time.Time // of the events that have not settled; zero: none
	for {
		select {
		case <-ctx.Done():
			return
		case <-requests:
			_ = w.Reload() // which reports it
			continue
		case <-settled.C:
			first = time.Time{}
			follow()
			w.loadChanged()
			continue
		case <-events:
		case <-poll.C:
			follow()
			if !w.changed() {
				continue
			}
		}
		if first.IsZero() {
			first = time.Now()
		}
		settled.Reset(min(debounce, patience-time.Since(first)))
	}
}

func (w *Watcher) changed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.o.Hash() != w.loaded
}

// loadChanged loads files that are not those loaded last. So the error of files that stay as they
// are is reported once.
func (w *Watcher) loadChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.o.Hash(); now != w.loaded {
		w.loaded = now
		_ = w.load() // which reports it
	}
}
