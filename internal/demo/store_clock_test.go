package demo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// The edges of windows are those of the store, whose answer takes a second. If it no longer tells
// its time, the last answer stays.
func TestClockOfAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails error
		d, err := New(headgate.NewMemory(), Options{Now: func(context.Context) (time.Time, error) {
			time.Sleep(500 * time.Millisecond)
			now := time.Now().Add(42 * time.Minute)
			time.Sleep(500 * time.Millisecond)
			if fails != nil {
				return time.Time{}, fails
			}
			return now, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			begun := time.Now()
			s := read[state](t, ask(d, "GET", "/api/state", "", ""))
			want := epoch(begun.Add(time.Second + 42*time.Minute))
			if s.Now != want || s.Lanes[0].At != want {
				t.Errorf("now %.3f, the left lane %.3f; want %.3f", s.Now, s.Lanes[0].At, want)
			}
			fails = errors.New("no permission")
		}
	})
}

// A store whose clock does not answer is waited for no longer than a request may take.
func TestClockOfStoreThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(slowStore(time.Hour), Options{Now: func(ctx context.Context) (time.Time, error) {
			<-ctx.Done()
			return time.Time{}, ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if w := ask(d, "GET", "/api/state", "", ""); w.Code != 503 || time.Since(begun) != patience {
			t.Errorf("%d after %s: %s", w.Code, time.Since(begun), w.Body)
		}
	})
}
