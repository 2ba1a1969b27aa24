package chaos

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// begins bounds at how many moments the intervals begin in which an account is checked.
const begins = 400

// check holds each account against its limit, in every interval. Where what was known
// may have been forgotten or taken back, the run falls into one history more for each time:
// each keeps the limit, and two of lengths t and u grant at most most(t+u) + most(0).
// Before the fault and after it there is one history alone.
func (n *tally) check(t *testing.T, s *scene, m moments) {
	t.Helper()
	for _, a := range n.accounts {
		room := a.room(s)
		if over := a.over(0, m.ended+patience); over > room {
			t.Errorf("%s under %s: %d more were granted than the limit says; the bound is %d", a.key, a.limit, over, room)
		}
		if over := a.over(0, m.injected); over > 0 {
			t.Errorf("%s under %s: %d too many before the fault", a.key, a.limit, over)
		}
		if over := a.over(m.answering, m.ended+patience); over > 0 {
			t.Errorf("%s under %s: %d too many after the fault", a.key, a.limit, over)
		}
	}
}

// room is what may be granted beyond the limit.
func (a *account) room(s *scene) int64 {
	if s.begun == nil {
		return 0
	}
	return s.begun(a) * most(a.limit, 0)
}

// over is by how much the grants between from and to exceed the limit, in that interval
// in which they do it most. A grant was decided at some moment between its call and its
// answer, so those that lie in an interval were decided in it.
func (a *account) over(from, to time.Duration) int64 {
	var inside []grant
	for _, g := range a.grants {
		if g.start >= from && g.end <= to {
			inside = append(inside, g)
		}
	}
	slices.SortFunc(inside, func(x, y grant) int { return cmp.Compare(x.end, y.end) })
	worst := int64(0)
	for i := 0; i < len(inside); i += 1 + len(inside)/begins {
		begin, granted := inside[i].start, int64(0)
		for _, g := range inside {
			if g.start >= begin {
				granted++
				worst = max(worst, granted-most(a.limit, g.end-begin))
			}
		}
	}
	return worst
}

// bound is how much of the account the whole run may grant.
func (a *account) bound(s *scene) int64 {
	last := a.first
	for _, g := range a.grants {
		last = max(last, g.end)
	}
	return most(a.limit, last-a.first) + a.room(s)
}

// checkCharges asks what the ledgers were charged: each call at most once, and if
// nothing may have been lost, all that was granted.
func (n *tally) checkCharges(t *testing.T, store headgate.Store, kept bool) {
	t.Helper()
	for _, a := range n.accounts {
		if !a.isLedger() {
			continue
		}
		var d headgate.Decision
		until(t, "told what was charged", func() (told bool) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			var err error
			d, err = store.Take(ctx, headgate.Request{Key: a.key, Limit: a.limit})
			return err == nil
		})
		charged, granted := a.limit.Capacity()-d.Remaining, int64(len(a.grants))
		if charged > granted+a.errors {
			t.Errorf("%s: %d were charged for %d grants and %d errors", a.key, charged, granted, a.errors)
		}
		// One token flows in each 53 minutes.
		if kept && charged+1 < granted {
			t.Errorf("%s: %d were charged for %d grants", a.key, charged, granted)
		}
	}
}

// TestOver sees what a check must see.
func TestOver(t *testing.T) {
	a := &account{limit: limits("10/s burst 5")[0]}
	grantAt := func(count int, start, end time.Duration) {
		for range count {
			a.grants = append(a.grants, grant{start, end})
		}
	}
	grantAt(5, 0, time.Millisecond)
	grantAt(10, time.Second, time.Second+time.Millisecond)
	if over := a.over(0, time.Minute); over != 5 {
		t.Errorf("10 at once from a bucket of 5: %d too many, want 5", over)
	}
	if over := a.over(0, time.Second); over != 0 {
		t.Errorf("5 at once from a bucket of 5: %d too many", over)
	}
	a.grants = a.grants[:5]
	grantAt(9, 0, time.Second)
	if over := a.over(0, time.Minute); over != 0 {
		t.Errorf("14 in a second from a bucket of 5: %d too many", over)
	}
	for text, want := range map[string][2]int64{
		"10/s burst 5": {5, 25}, "10/s stepped": {20, 40}, "10/s fixed-window": {20, 40},
		"10/s sliding-window": {20, 40}, "10/s sliding-log": {10, 30},
	} {
		l := limits(text)[0]
		if got := [2]int64{most(l, 0), most(l, 2*time.Second)}; got != want {
			t.Errorf("%s grants at most %v at once and in 2 s, want %v", text, got, want)
		}
	}
}
