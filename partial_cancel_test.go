package headgate

import (
	"testing"
	"time"
)

// A part of a start that is ahead is cancelled, and the rest is given back once it has come.
func TestAPartialCancelLosesNothing(t *testing.T) {
	base := time.Unix(1_800_000_000, 0) // the beginning of an hour
	for _, l := range []Limit{FixedWindow(10, time.Hour), SlidingWindow(10, time.Hour),
		SlidingLog(10, time.Hour)} {
		m := NewMemorySize(10)
		slow := Request{Key: "k", Limit: Per(1, 90*time.Minute).Named("slow"), Cost: 1, At: base}
		must(m.Take(t.Context(), slow))
		slow.MaxWait = 9 * time.Hour
		grant := Request{Key: "k", Limit: l, Cost: 8, MaxWait: 9 * time.Hour, At: base,
			Start: new(time.Time)}
		if err := m.TakeAll(t.Context(), []Request{grant, slow}, make([]Decision, 2)); err != nil {
			t.Fatal(err)
		}
		part := Request{Key: "k", Limit: l, Cost: -2, At: base.Add(time.Second), Start: grant.Start}
		must(m.Take(t.Context(), part))
		rest := grant.Refund(6)
		rest.At = grant.Start.Add(time.Minute)
		if d := must(m.Take(t.Context(), rest)); d.Remaining != 10 {
			t.Errorf("%s: %d of 10 remain", l, d.Remaining)
		}
	}
}
