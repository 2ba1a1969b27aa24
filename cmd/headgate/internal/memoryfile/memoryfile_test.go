package memoryfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
)

func limit(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// opened is a store with its file.
type opened struct {
	headgate.Store
	*File
}

func open(t *testing.T, path string) opened {
	t.Helper()
	m := headgate.NewMemory()
	f, err := New(m, path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := observe.New(m, observe.Observer{Decided: f.Decided})
	if err != nil {
		t.Fatal(err)
	}
	return opened{s, f}
}

func (o opened) take(t *testing.T, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := o.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// All algorithms, and keys of any bytes, are as they were. A part of a file is no file.
func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	first := open(t, path)
	if overrides, err := first.Load(); overrides != nil || err != nil {
		t.Fatal(overrides, err)
	}
	var requests []headgate.Request
	for _, text := range []string{
		"a=9/h burst 20", "b=9/h burst 20 stepped", "c=9/w fixed-window", "d=9/w sliding-window",
		"e=9/h sliding-log", "f=9/month tz Asia/Kolkata anchor 17", "9/h", "envoy=9/3600s fixed-window",
	} {
		for cost := range int64(4) {
			requests = append(requests, headgate.Request{
				Key: fmt.Sprintf("\xff|%d", cost), Limit: limit(t, text), Cost: cost + 1,
			})
		}
	}
	ds := make([]headgate.Decision, len(requests))
	if err := first.TakeAll(t.Context(), requests, ds); err != nil {
		t.Fatal(err)
	}
	overrides := map[string]string{"a ip:192.0.2.1": `{"ban":true}`}
	for range 2 {
		if err := first.Save(overrides); err != nil {
			t.Fatal(err)
		}
		next := open(t, path)
		if got, err := next.Load(); err != nil || !reflect.DeepEqual(got, overrides) {
			t.Fatal(got, err)
		}
		for _, r := range requests {
			if state := next.memory.State(r.Key, r.Limit); state == nil || !slices.Equal(state, first.memory.State(r.Key, r.Limit)) {
				t.Errorf("%s: %v", r.Limit, state)
			}
			r.Cost = 0
			if d := next.take(t, r); d.Remaining != first.take(t, r).Remaining {
				t.Errorf("%s: %+v", r.Limit, d)
			}
		}
		first = next
	}
	refuseParts(t, path, requests)
}

// refuseParts checks that no part of a file is read.
func refuseParts(t *testing.T, path string, requests []headgate.Request) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		err := os.WriteFile(path, whole[:n], 0o600) //nolint:gosec,nolintlint // in t.TempDir
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		if got, err := s.Load(); got != nil || err == nil || !strings.Contains(err.Error(), ": damaged, or not of version 1: ") {
			t.Fatalf("%d of %d bytes: %v, %v", n, len(whole), got, err)
		}
		for _, r := range requests {
			if state := s.memory.State(r.Key, r.Limit); state != nil {
				t.Fatalf("%d of %d bytes: %s has %v", n, len(whole), r.Limit, state)
			}
		}
	}
}

// A key that is back in its initial state leaves the file, and the names that are kept are bounded.
func TestForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	s := open(t, path)
	l := limit(t, "a=9/h")
	for i := range 100 {
		s.take(t, headgate.Request{Key: fmt.Sprint(i), Limit: l, Cost: 1})
		s.take(t, headgate.Request{Key: fmt.Sprint("peek", i), Limit: l})
	}
	for i := range 60 {
		if err := s.Reset(t.Context(), fmt.Sprint(i), l); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Save(nil); err != nil || len(s.keys) != 40 {
		t.Errorf("%d keys, %v", len(s.keys), err)
	}
	next := open(t, path)
	if _, err := next.Load(); err != nil || next.memory.Keys() != 40 || len(next.keys) != 40 {
		t.Errorf("%d keys, %v", next.memory.Keys(), err)
	}
	s.path = filepath.Join(path, "in a file")
	if err := s.Save(nil); err == nil || len(s.keys) != 40 {
		t.Errorf("%d keys, %v", len(s.keys), err)
	}
	r := headgate.Request{Key: "99", Limit: l, Cost: 1}
	if n := testing.AllocsPerRun(100, func() { s.take(t, r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A server that stops during a write writes once more, and another may write, too: the file has all
// keys of one of them. What a killed server has left is removed.
func TestSavesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	servers := []opened{open(t, path), open(t, path)}
	l := limit(t, "a=9/h")
	for i := range 20_000 {
		for _, s := range servers {
			s.take(t, headgate.Request{Key: fmt.Sprint(i), Limit: l, Cost: 1})
		}
	}
	var saves sync.WaitGroup
	for i := range 6 {
		saves.Go(func() {
			if err := servers[i%2].Save(nil); err != nil {
				t.Error(err)
			}
		})
	}
	saves.Wait()
	if err := os.WriteFile(path+".tmp1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	next := open(t, path)
	if _, err := next.Load(); err != nil || next.memory.Keys() != 20_000 {
		t.Errorf("%d keys, %v", next.memory.Keys(), err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("also there: %v, %v", left, err)
	}
}

// A link stays a link. A directory is an error, and stays where it is.
func TestPath(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "memory"), filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := open(t, path).Save(nil); err != nil {
		t.Fatal(err)
	}
	if err := open(t, link).Save(nil); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link is to %q, %v", target, err)
	}
	if _, err := New(headgate.NewMemory(), dir); err == nil || !strings.Contains(err.Error(), "want a regular file") {
		t.Errorf("a directory: %v", err)
	}
}
