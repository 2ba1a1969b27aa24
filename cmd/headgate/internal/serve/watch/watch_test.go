package watch

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// bench runs a Watcher over a content in memory, and notes when it loads what.
type bench struct {
	content  atomic.Value
	fault    error // of loading "bad"
	start    time.Time
	loads    []load
	requests chan os.Signal
	*Watcher
}

type load struct {
	at      time.Duration
	content string
	err     error
}

// start starts a Watcher over the content "a".
func start(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		fault: errors.New("line 3"), start: time.Now(), requests: make(chan os.Signal),
	}
	b.content.Store("a")
	now := func() string { return b.content.Load().(string) }
	b.Watcher = New(Options{
		Hash: now,
		Load: func() error {
			if now() == "bad" {
				return b.fault
			}
			return nil
		},
		Report: func(err error) {
			b.loads = append(b.loads, load{time.Since(b.start), now(), err})
		},
		Requests: b.requests,
		Loaded:   "a",
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go b.Run(ctx)
	return b
}

func (b *bench) want(t *testing.T, want ...load) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(b.loads, want) {
		t.Errorf("loads %v; want %v", b.loads, want)
	}
}

const ms = time.Millisecond

// A change is loaded by the second comparison that finds it: never the empty file.
func TestChangeSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		time.Sleep(2500 * ms)
		b.content.Store("")
		time.Sleep(time.Second)
		b.content.Store("b")
		time.Sleep(time.Minute)
		b.want(t, load{5000 * ms, "b", nil})
	})
}

// Files that change all the time are loaded by the third comparison. Files that are again as those
// in use are not loaded.
func TestChangesThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		time.Sleep(500 * ms)
		for _, content := range []string{"b", "c", "a", "d", "e", "f", "g", "bad"} {
			b.content.Store(content)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		b.want(t, load{6 * time.Second, "f", nil}, load{9 * time.Second, "bad", b.fault})
	})
}

func TestErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		time.Sleep(500 * ms) // between comparisons
		b.content.Store("bad")
		time.Sleep(time.Minute)
		b.content.Store("bad")
		time.Sleep(time.Minute)
		b.content.Store("a")
		time.Sleep(time.Minute)
		b.content.Store("bad")
		time.Sleep(time.Minute)
		b.want(t,
			load{2 * time.Second, "bad", b.fault},
			load{2*time.Minute + 2*time.Second, "a", nil},
			load{3*time.Minute + 2*time.Second, "bad", b.fault})
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		if err := b.Reload(); err != nil {
			t.Error(err)
		}
		b.content.Store("bad")
		if err := b.Reload(); !errors.Is(err, b.fault) {
			t.Errorf("Reload = %v; want %v", err, b.fault)
		}
		time.Sleep(time.Minute) // no comparison loads it again
		b.requests <- syscall.SIGHUP
		b.want(t, load{0, "a", nil}, load{0, "bad", b.fault}, load{time.Minute, "bad", b.fault})
	})
}
