package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// liar answers by the number of the take.
type liar struct {
	takes  atomic.Int64
	answer func(take int) bool
}

func (l *liar) Take(string) (bool, error) { return l.answer(int(l.takes.Add(1))), nil }

// Every adapter grants exactly N takes of a limit of N: to one caller, to many
// at once, and to each key for itself.
func TestContendersGrantExactlyN(t *testing.T) {
	const n = 25
	names := []string{"alone:1", "alone:2", "at once"}
	for _, e := range memoryField() {
		t.Run("memory/"+e.Name, func(t *testing.T) { grantsExactly(t, e, "", names, n) })
	}
	clients := []string{"10.0.0.1:1", "[2001:db8::1]:1", "10.0.0.2:1"}
	for _, e := range httpField() {
		t.Run("http/"+e.Name, func(t *testing.T) { grantsExactly(t, e, "", clients, n) })
	}
	server := redistest.Start(t)
	for i, e := range slices.Concat(redisLoopField(), headgateAlgorithms(), batchingField()) {
		own := fmt.Sprint(i) // several keep the same names, in ways of their own
		keys := []string{own + "alone:1", own + "alone:2", own + "at once"}
		t.Run("redis/"+own+" "+e.Name, func(t *testing.T) { grantsExactly(t, e, server.Addr, keys, n) })
	}
}

// grantsExactly fails the test unless e, opened with a limit of n, grants n of each of
// the keys, the last of which is asked by many at once.
func grantsExactly(t *testing.T, e Entry, addr string, keys []string, n int) {
	t.Helper()
	c, err := e.Open(Setup{Terms: Terms{Burst: int64(n), Every: refill}, Keys: 10, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeContender(c); err != nil {
			t.Error(err)
		}
	})
	last := len(keys) - 1
	if e.OneKey {
		keys, last = keys[last:], 0
	}
	for i, key := range keys {
		callers := 1
		if i == last {
			callers = 8
		}
		if got := granted(t, c, key, callers, 5*n); got != int64(n) {
			t.Errorf("%s: %d of %d takes by %d callers granted, want %d", key, got, 5*n, callers, n)
		}
	}
}

// granted makes takes on key, divided among callers, and counts the grants.
func granted(t *testing.T, c Contender, key string, callers, takes int) int64 {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		share := takes*(i+1)/callers - takes*i/callers
		wg.Go(func() {
			for range share {
				ok, err := c.Take(key)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return n.Load()
}

// A closed loop measures something however late its callers come to run.
func TestClosedLoopAsksOnce(t *testing.T) {
	c := takeFunc(func() (bool, error) { return true, nil })
	s, err := newClosedLoop(c, shuffledKeys(10), 4).run(0)
	if err != nil || s.Granted != 4 {
		t.Errorf("%d takes by 4 callers, %v; want one each", s.Granted, err)
	}
}
