package chaos

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// check holds each account against its limit, in every interval: what the store granted against the
// limit itself, and what each instance granted by itself against its share. Where what was known to the store
// may have been forgotten or taken back, the run falls into one history more for each time:
// each keeps the limit, and two of lengths t and u grant at most most(t+u) + most(0).
// Before the fault and after it there is one history alone.
//
// That is more than what is stated for a fleet that goes over and back (docs/design/fallback.md), which adds up
// the same parts: the intervals in which the store granted, and those in which shares did.
func (n *tally) check(t *testing.T, s *scene, m moments) {
	t.Helper()
	for _, a := range n.accounts {
		for _, c := range n.claims(a, s, m) {
			if over := over(c.grants, c.most); over > c.room {
				t.Errorf("%s: %s under %s: %d more were granted %s than it says; the bound is %d", n.stack.name, a.key, a.limit, over, c.which, c.room)
			}
		}
		if over := crowded(a.grants, a.limit, n.begin); over > 0 && s.begun == nil {
			t.Errorf("%s: %s under %s: %d more were granted in a window of the clock than it says", n.stack.name, a.key, a.limit, over)
		}
	}
}

// claim is that of some grants no more lie in any interval than it grants at most, and the room.
type claim struct {
	which  string
	grants []grant
	most   func(time.Duration) int64
	room   int64
}

// claims are what is to be held of a.
func (n *tally) claims(a *account, s *scene, m moments) []claim {
	if a.booked() {
		return n.bookedClaims(a, s, m)
	}
	end := m.ended + patience
	limit := func(d time.Duration) int64 { return most(a.limit, d) }
	cs := []claim{
		{"before the fault", within(a.grants, 0, m.injected), limit, 0},
		{"by the store", within(a.grants, 0, end), limit, n.room(a, s)},
		{"after the fault", within(a.grants, m.answering+n.stack.settles(), end), limit, 0},
	}
	share, bounded := n.stack.own(a.limit)
	for _, own := range a.own {
		if bounded {
			cs = append(cs, claim{"by an instance, instead of the store,", own, share, 0})
		}
	}
	return cs
}

// room is what the store may grant beyond the limit. If it forgets, what was taken ahead may be used
// on top, and what starts ahead.
func (n *tally) room(a *account, s *scene) int64 {
	room := int64(0)
	if s.begun != nil {
		room += s.begun(a) * (most(a.limit, 0) + n.stack.lent(a.limit))
		if a.booked() {
			room += s.begun(a) * most(a.limit, ahead)
		}
	}
	if s.dropped != nil {
		room += s.dropped(a) * n.stack.lent(a.limit)
	}
	return room
}

// within are the grants between from and to. A grant was decided at some moment between its call and
// its answer, so those that lie in an interval were decided in it.
func within(grants []grant, from, to time.Duration) (inside []grant) {
	for _, g := range grants {
		if g.start >= from && g.end <= to {
			inside = append(inside, g)
		}
	}
	return inside
}

// over returns by how much grants exceed what an interval grants at most, in the interval in which
// they do it most. It tries each one that begins with a grant and ends with one.
func over(grants []grant, most func(time.Duration) int64) (worst int64) {
	grants = slices.SortedFunc(slices.Values(grants), func(x, y grant) int {
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.n, y.n))
	})
	begins := make(map[time.Duration]bool, len(grants))
	for _, g := range grants {
		if g.n > 0 {
			begins[g.start] = true
		}
	}
	for begin := range begins {
		granted := int64(0)
		for _, g := range grants {
			if g.start < begin {
				continue
			}
			if granted += g.n; g.n > 0 {
				worst = max(worst, granted-most(g.end-begin))
			}
		}
	}
	return worst
}

// crowded is by how much grants exceed a limit's count in that window of the clock in which they do it most, if it has
// such windows. What may belong to another one by the server's clock is not counted.
func crowded(grants []grant, l headgate.Limit, begin time.Time) int64 {
	if a := l.Algorithm(); a != headgate.AlgorithmFixedWindow && a != headgate.AlgorithmSlidingWindow {
		return 0
	}
	const margin = 10 * time.Millisecond
	window := func(at time.Duration) int64 { return begin.Add(at).UnixMicro() / l.Period().Microseconds() }
	worst, counts := int64(0), make(map[int64]int64)
	for _, g := range grants {
		if w := window(g.start - margin); w == window(g.end+margin) {
			counts[w] += g.n
			worst = max(worst, counts[w]-l.Capacity())
		}
	}
	return worst
}

// bound is how much of the account the store may grant in the whole run.
func (n *tally) bound(a *account, s *scene) int64 {
	last := a.first
	for _, g := range a.grants {
		last = max(last, g.end)
	}
	return most(a.limit, last-a.first) + n.room(a, s)
}

// ownBound is how much the instances may grant by themselves, while the store was unavailable.
func (n *tally) ownBound(a *account) int64 {
	if a.away.calls == 0 {
		return 0
	}
	share, _ := n.stack.own(a.limit)
	return instances * share(a.away.last-a.away.since)
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
		charged, granted := a.limit.Capacity()-d.Remaining, tokens(a.grants)
		if charged > granted+a.errors+a.away.tokens {
			t.Errorf("%s: %s: %d were charged; %d were granted, %d failed, and the store did not answer for %d", n.stack.name, a.key, charged, granted, a.errors, a.away.tokens)
		}
		// One token flows in each 53 minutes.
		if kept && charged+1 < granted {
			t.Errorf("%s: %s: %d were charged, and %d granted", n.stack.name, a.key, charged, granted)
		}
	}
}

// TestOver sees what a check must see.
func TestOver(t *testing.T) {
	var grants []grant
	grantAt := func(count int, start, end time.Duration) {
		for range count {
			grants = append(grants, grant{start, end, 1})
		}
	}
	bucket := func(d time.Duration) int64 { return most(limits("10/s burst 5")[0], d) }
	grantAt(5, 0, time.Millisecond)
	grantAt(10, time.Second, time.Second+time.Millisecond)
	if over := over(grants, bucket); over != 5 {
		t.Errorf("10 at once from a bucket of 5: %d too many, want 5", over)
	}
	if over := over(within(grants, 0, time.Second), bucket); over != 0 {
		t.Errorf("5 at once from a bucket of 5: %d too many", over)
	}
	grants = grants[:5]
	grantAt(9, 0, time.Second)
	if over := over(grants, bucket); over != 0 {
		t.Errorf("14 in a second from a bucket of 5: %d too many", over)
	}
	grants = append(grants[:5], grant{start: time.Millisecond, end: 0, n: -3}, grant{time.Millisecond, 2 * time.Millisecond, 4})
	if over := over(grants, bucket); over != 1 {
		t.Errorf("9 from a bucket of 5 to which 3 came back: %d too many, want 1", over)
	}
	if over := over(within(grants, 2*time.Millisecond, time.Second), bucket); over != 0 {
		t.Errorf("nothing: %d too many", over)
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

// TestCrowded sees the windows of the clock, and what lies in one for certain.
func TestCrowded(t *testing.T) {
	begin := time.Unix(1000, 0)
	var grants []grant
	for at := time.Duration(0); at < 2*time.Second; at += 100 * time.Millisecond {
		grants = append(grants, grant{at, at + time.Millisecond, 1})
	}
	for text, want := range map[string]int64{
		"10/s fixed-window": 0, "9/s fixed-window": 0, "8/s fixed-window": 1, "7/s sliding-window": 2, "1/s sliding-log": 0,
	} {
		if over := crowded(grants, limits(text)[0], begin); over != want {
			t.Errorf("ten a second under %s: %d too many, want %d", text, over, want)
		}
	}
}

// TestClaims holds each grant against the bound of whose it was.
func TestClaims(t *testing.T) {
	l := limits("3/s")[0]
	m := moments{injected: time.Second, answering: 2 * time.Second, ended: 5 * time.Second}
	for name, want := range map[string][2]string{
		"bare":   {"", "by an instance, instead of the store,"},
		"closed": {"", "by an instance, instead of the store,"},
		"open":   {"", ""},
		"local":  {"", "by an instance, instead of the store,"}, // whose share is one at a time
		"whole":  {"", "by an instance, instead of the store,"},
	} {
		k := stacks[slices.IndexFunc(stacks, func(k stack) bool { return k.name == name })]
		for i, degraded := range []bool{false, true} {
			n := newTally(k, time.Now())
			d := headgate.Decision{Limit: l}
			if degraded {
				d.Limit = l.Share(1)
			}
			for range 3 {
				a := n.account("bucket-0", l, time.Second)
				a.record(&call{cost: 1, start: time.Second, end: time.Second + time.Millisecond}, d.Allowed(), d.Degraded())
			}
			var broken []string
			for _, c := range n.claims(n.account("bucket-0", l, time.Second), &scene{}, m) {
				if over(c.grants, c.most) > c.room {
					broken = append(broken, c.which)
				}
			}
			if got := strings.Join(broken, " "); got != want[i] {
				t.Errorf("%s, degraded %t: broken is %q, want %q", name, degraded, got, want[i])
			}
		}
	}
}
