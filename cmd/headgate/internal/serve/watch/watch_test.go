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
	events   chan struct{}
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
		fault: errors.New("line 3"), start: time.Now(),
		events: make(chan struct{}), requests: make(chan os.Signal),
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
		Loaded: "a",
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go b.loop(ctx, b.events, b.requests, func() {})
	return b
}

// write changes the content, and notifies if the change is seen.
func (b *bench) write(content string, seen bool) {
	b.content.Store(content)
	if seen {
		b.events <- struct{}{}
	}
}

func (b *bench) want(t *testing.T, want ...load) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(b.loads, want) {
		t.Errorf("loads %v; want %v", b.loads, want)
	}
}

const ms = time.Millisecond

func TestEventsSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.write("", true)
		time.Sleep(100 * ms)
		b.write("b", true)
		time.Sleep(time.Second)
		b.want(t, load{300 * ms, "b", nil}) // never the empty file
	})
}

func TestEventsThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.content.Store("b")
		for range 21 { // as a log in the same directory
			b.events <- struct{}{}
			time.Sleep(100 * ms)
		}
		b.want(t, load{1000 * ms, "b", nil}) // once
	})
}

func TestSameContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.write("a", true)
		time.Sleep(time.Minute)
		b.want(t)
	})
}

// A change without an event is found by comparing, and read when it has settled.
func TestUnseenChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		time.Sleep(3 * time.Second)
		b.write("b", false)
		time.Sleep(time.Minute)
		b.want(t, load{10_200 * ms, "b", nil})
	})
}

func TestErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.write("bad", true)
		time.Sleep(time.Minute)
		b.write("bad", true)
		time.Sleep(time.Minute)
		b.write("a", true)
		time.Sleep(time.Minute)
		b.write("bad", true)
		time.Sleep(time.Minute)
		b.want(t,
			load{200 * ms, "bad", b.fault},
			load{2*time.Minute + 200*ms, "a", nil},
			load{3*time.Minute + 200*ms, "bad", b.fault})
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
