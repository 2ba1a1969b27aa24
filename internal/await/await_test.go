package await_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/await"
)

func TestACallerLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, done := time.Now(), false
		left := await.Do(ctx, func() {
			time.Sleep(time.Minute)
			done = true
		})
		if took := time.Since(start); !left || took != time.Second {
			t.Errorf("left %v after %s", left, took)
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); !done {
			t.Error("the call did not go on")
		}
	})
}

func TestPanicsAreRaisedInTheCaller(t *testing.T) {
	defer func() {
		if recover() != "broken" {
			t.Error("the panic is lost")
		}
	}()
	await.Do(t.Context(), func() { panic("broken") })
}

func TestACallThatEndsItsGoroutineReturns(t *testing.T) {
	if await.Do(t.Context(), runtime.Goexit) {
		t.Error("the context had ended")
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := await.Sleep(ctx, time.Second/2); err != nil {
			t.Error(err)
		}
		if err := await.Sleep(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := await.Sleep(ctx, 0); err != nil {
			t.Errorf("for no time: %v", err)
		}
	})
}
