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

// keys is how many gates there are.
func (k *KeyedGate) keys() (gates int) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		gates += len(s.gates)
		s.mu.Unlock()
	}
	return gates
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
		if triesKey(t, k, "user:1") || !triesKey(t, k, "user:50") {
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

// However many keys come and go, there are no more than about twice as many gates as are in use.
func TestKeyedGateRemovesIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		if open, _ := k.Peek("unknown"); !open || k.keys() != 0 {
			t.Error("a key without passes is not open, or has a gate")
		}
		for i := range 20_000 {
			must(0, k.Wait(t.Context(), fmt.Sprint(i)))
			if i%100 == 99 { // at most 1,000 gates have passes of the last period
				time.Sleep(100 * time.Millisecond)
			}
			if n := k.keys(); n > 2500 {
				t.Fatalf("%d gates after %d keys", n, i)
			}
		}
		must(0, k.Wait(t.Context(), "7"))
		if triesKey(t, k, "7") {
			t.Error("a key that came back has no limit")
		}
	})
}

// A gate at which callers wait is kept, however long that takes.
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

// Keys that come and go while their gates are being removed pass no more than they may.
func TestKeyedGateHoldsItsPromiseWhileGatesAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period, keys = 3, 100 * time.Millisecond, 2000
		k := must(NewKeyed(n, period))
		var mu sync.Mutex
		seen := map[string][]time.Time{}
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				for j := range 50 {
					time.Sleep(time.Duration((i*7919+j*104729)%1000) * time.Millisecond)
					key := fmt.Sprint((i/10 + j*j) % keys)
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
	})
}

// The gate of a caller that is held up before it passes is kept.
func TestKeyedGateKeepsGatesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := must(NewKeyed(1, time.Second))
		s, g := k.enter("k")
		time.Sleep(time.Minute)
		for i := range 1000 {
			must(0, k.Wait(t.Context(), fmt.Sprint(i)))
		}
		must(0, g.Wait(t.Context()))
		if triesKey(t, k, "k") {
			t.Error("two passes in a period")
		}
		s.leave(g)
		time.Sleep(time.Minute)
		for i := range 5000 { // every shard doubles, whatever the seed of the hash
			must(0, k.Wait(t.Context(), fmt.Sprint("other", i)))
		}
		if _, again := k.enter("k"); again == g {
			t.Error("a gate that is not in use was kept")
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
	if n := k.keys(); n != 0 {
		t.Errorf("%d gates", n)
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
		if err := k.Wait(t.Context(), "new"); !errors.Is(err, ErrClosed) {
			t.Errorf("a new key after Close: %v", err)
		}
		if passed, err := k.TryWait(t.Context(), "new", 0); passed || !errors.Is(err, ErrClosed) {
			t.Errorf("a new key tries after Close: %v, %v", passed, err)
		}
		if open, in := k.Peek("new"); open || in != headgate.Never {
			t.Errorf("Peek is %v, %s; want never", open, in)
		}
		if n := k.keys(); n != 0 {
			t.Errorf("%d gates are kept after Close", n)
		}
		if _, err := NewKeyed(0, time.Hour); err == nil {
			t.Error("n of 0: no error")
		}
		var zero KeyedGate
		if err := zero.Wait(t.Context(), "k"); err == nil {
			t.Error("the zero KeyedGate lets pass")
		}
		if passed, err := zero.TryWait(t.Context(), "k", 0); passed || !isInvalid(err) {
			t.Errorf("the zero KeyedGate: %v, %v", passed, err)
		}
		if open, _ := zero.Peek("k"); open {
			t.Error("the zero KeyedGate is open")
		}
	})
}
