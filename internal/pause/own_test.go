package pause

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A process keeps its own pauses of a bounded number of keys, and gives no key the pause of
// another.
func TestOwnPausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o own
		o.init()
		for i := range 2 * ownKeys {
			o.extend(strconv.Itoa(i), time.Hour)
		}
		if len(o.kept) != ownKeys || o.left(strconv.Itoa(2*ownKeys-1)) != time.Hour {
			t.Errorf("%d keys; the last has %s", len(o.kept), o.left(strconv.Itoa(2*ownKeys-1)))
		}
		for i := range 1000 {
			if left := o.left("other " + strconv.Itoa(i)); left != 0 {
				t.Fatalf("a key that never paused has %s left", left)
			}
		}
		o.extend("1", time.Minute)
		o.extend("1", time.Second)
		o.passed("1") // a request that was sent before the pause
		if left := o.left("1"); left < time.Minute {
			t.Errorf("%s are left of a minute", left)
		}
		time.Sleep(time.Hour)
		o.passed("1")
		if left := o.left("1"); left != 0 || len(o.kept) >= ownKeys {
			t.Errorf("%s are left, %d keys", left, len(o.kept))
		}
	})
}
