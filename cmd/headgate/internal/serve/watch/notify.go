package watch

import "github.com/fsnotify/fsnotify"

// notifier turns the events of the file system into signals without content.
type notifier struct {
	events  chan struct{} // nil if the system has no watches left
	watcher *fsnotify.Watcher
}

// newNotifier starts a notifier. If that fails, files are only compared.
func newNotifier() *notifier {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return &notifier{}
	}
	n := &notifier{make(chan struct{}, 1), watcher}
	go n.forward()
	return n
}

// forward ends when the watcher is closed.
func (n *notifier) forward() {
	for {
		select {
		case _, ok := <-n.watcher.Events:
			if !ok {
				return
			}
		case _, ok := <-n.watcher.Errors: // events were lost
			if !ok {
				return
			}
		}
		n.notify()
	}
}

// notify leaves a signal, if there is none yet.
func (n *notifier) notify() {
	select {
	case n.events <- struct{}{}:
	default:
	}
}

// watch watches directories, and nothing else. All watches are new, because a path may be
// another directory now. What is in a directory that cannot be watched is found by comparing.
func (n *notifier) watch(directories []string) {
	if n.watcher == nil {
		return
	}
	for _, old := range n.watcher.WatchList() {
		_ = n.watcher.Remove(old)
	}
	for _, directory := range directories {
		_ = n.watcher.Add(directory)
	}
}

func (n *notifier) close() {
	if n.watcher != nil {
		_ = n.watcher.Close()
	}
}
