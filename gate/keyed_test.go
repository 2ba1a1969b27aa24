package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// keys is how many gates there are, and whether any shard has a timer or a map.
func (k *KeyedGate) keys() (gates int, kept bool) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		gates += len(s.gates)
		kept = kept || s.timer != nil || s.gates != nil
		s.mu.Unlock()
	}
	return gates, kept
}

func TestKeyedGateLimitsEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(2, time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		for key := range 50 {
			wg.Go(func() {
				for i := range 10 {
					if err := k.Wait(t.Context(), fmt.Sprint("user:", key)); err != nil {
						t.Error(err)
					}
					if got, want := time.Since(start), time.Duration(i/2)*time.Second; got != want {
						t.Errorf("key %d passes at %s; want %s", key, got, want)
					}
				}
			})
		}
		wg.Wait()
		if k.TryWait("user:1", 0) || !k.TryWait("user:50", 0) {
			t.Error("TryWait")
		}
		if open, in := k.Peek("user:1"); open || in != time.Second {
			t.Errorf("Peek is %v, %s; want closed for 1s", open, in)
		}
		if err := k.WaitN(t.Context(), "user:1", 3); err == nil {
			t.Error("3 of 2: no error")
		}
	})
}

func TestKeyedGateDropsIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		count := func(want int) {
			t.Helper()
			if gates, kept := k.keys(); gates != want || kept != (want > 0) {
				t.Errorf("after %s: %d gates, kept %v; want %d", time.Since(time.Unix(946684800, 0)), gates, kept, want)
			}
		}
		if open, _ := k.Peek("anybody"); !open {
			t.Error("a key that nobody knows is not open")
		}
		count(0)
		for i := range 1000 {
			must(0, k.Wait(t.Context(), fmt.Sprint(i)))
		}
		count(1000)
		time.Sleep(500 * time.Millisecond)
		for range 4 { // one waits for its turn, again and again
			must(0, k.Wait(t.Context(), "7"))
		}
		count(1)
		time.Sleep(2 * time.Second)
		count(0)
		// And begins anew.
		must(0, k.Wait(t.Context(), "7"))
		count(1)
		if k.TryWait("7", 0) {
			t.Error("a key that came back has no limit")
		}
	})
}

// A gate that somebody waits at is kept, however long that takes.
func TestKeyedGateKeepsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		start := time.Now()
		for range 10 {
			go func() { _ = k.Wait(t.Context(), "k") }()
		}
		synctest.Wait()
		if open, in := k.Peek("k"); open || in != 10*time.Second {
			t.Errorf("Peek is %v, %s; want 10s", open, in)
		}
		must(0, k.Wait(t.Context(), "k"))
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("passed after %s; want 10s", got)
		}
	})
}

// Keys that come and go while their gates are being dropped pass no more than they may.
func TestKeyedGateHoldsItsPromiseWhileDropping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period = 3, 100 * time.Millisecond
		k := must(NewKeyed(n, period))
		var mu sync.Mutex
		seen := map[string][]time.Time{}
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				for j := range 50 {
					time.Sleep(time.Duration((i*7919+j*104729)%1000) * time.Millisecond)
					key := fmt.Sprint((i + j) % 20)
					must(0, k.Wait(t.Context(), key))
					mu.Lock()
					seen[key] = append(seen[key], time.Now())
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, times := range seen {
			holdPromise(t, times, n, period)
		}
		time.Sleep(time.Second)
		if gates, kept := k.keys(); gates != 0 || kept {
			t.Errorf("%d gates are left", gates)
		}
	})
}

// A gate that was found and dropped before it was asked is closed; another one is made.
func TestKeyedGateAsksAnewWhatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		asked := 0
		err := k.at("k", func(g *Gate) error {
			if asked++; asked == 1 {
				time.Sleep(time.Minute)
			}
			return g.Wait(t.Context())
		})
		if err != nil || asked != 2 {
			t.Errorf("%v, asked %d gates; want 2", err, asked)
		}
	})
}

// One who is held up between being let go and knowing it, for so long that his gate is
// dropped, passes the one that took its place.
func TestKeyedGateAsksAnewWhoWasHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		asked := 0
		err := k.at("k", func(g *Gate) error {
			if asked++; asked > 1 {
				return g.Wait(t.Context())
			}
			g.mu.Lock()
			now := nanos()
			g.mu.Unlock()
			time.Sleep(time.Minute)
			g.mu.Lock()
			return g.pass(1, now)
		})
		if err != nil || asked != 2 {
			t.Errorf("%v, asked %d gates; want 2", err, asked)
		}
		if open, in := k.Peek("k"); open || in != time.Second {
			t.Errorf("Peek is %v, %s; want closed for 1s", open, in)
		}
	})
}

// What cannot pass makes no gate.
func TestKeyedGateMakesNoGateInVain(t *testing.T) {
	k := must(NewKeyed(2, time.Second))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int64{0, -1, 3} {
		if err := k.WaitN(t.Context(), "k", n); !isInvalid(err) {
			t.Errorf("%d of 2: %v", n, err)
		}
	}
	if err := k.Wait(ended, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if gates, kept := k.keys(); gates != 0 || kept {
		t.Errorf("%d gates", gates)
	}
}

// Gates come, go and are closed while a sweep pauses.
func TestKeyedGateSweepsInParts(t *testing.T) {
	k := must(NewKeyed(1, 5*time.Millisecond))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 30_000 {
				if err := k.Wait(t.Context(), fmt.Sprint(i, j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := 0; ; i++ {
		if gates, kept := k.keys(); gates == 0 && !kept {
			break
		} else if i == 1000 {
			t.Fatalf("%d gates are left", gates)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 30_000 {
		must(0, k.Wait(t.Context(), fmt.Sprint(i)))
	}
	time.Sleep(10 * time.Millisecond) // the sweep is under way
	k.Close()
	time.Sleep(50 * time.Millisecond)
	if gates, kept := k.keys(); gates != 0 || kept {
		t.Errorf("%d gates after Close", gates)
	}
}

func TestKeyedGateClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Hour))
		errs := make(chan error, 200)
		for i := range cap(errs) {
			go func() {
				_ = k.Wait(t.Context(), fmt.Sprint(i))
				errs <- k.Wait(t.Context(), fmt.Sprint(i))
			}()
		}
		synctest.Wait()
		k.Close()
		k.Close()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Fatalf("a waiter gets %v; want ErrClosed", err)
			}
		}
		if err := k.Wait(t.Context(), "new"); !errors.Is(err, ErrClosed) || k.TryWait("new", 0) {
			t.Errorf("a new key after Close: %v", err)
		}
		if open, in := k.Peek("new"); open || in != headgate.Never {
			t.Errorf("Peek is %v, %s; want never", open, in)
		}
		if _, kept := k.keys(); kept {
			t.Error("something is kept after Close")
		}
		if _, err := NewKeyed(0, time.Hour); err == nil {
			t.Error("n of 0: no error")
		}
		var zero KeyedGate
		if err := zero.Wait(t.Context(), "k"); err == nil {
			t.Error("the zero KeyedGate lets pass")
		}
	})
}
