package headgate

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// fullMemory is a store in which every place is taken until tomorrow.
func fullMemory(t *testing.T, keys int) *Memory {
	t.Helper()
	m := NewMemory(keys)
	for i := range 3 * keys {
		ask(t, m, fmt.Sprint("known", i), FixedWindow(1, 24*time.Hour), 1, 0)
	}
	return m
}

// Newcomers to a full store share their turns: each books behind the others, whoever asks
// without waiting is refused until then, and who gets a place of its own keeps to them.
func TestNewcomersBookInTurn(t *testing.T) {
	m := fullMemory(t, 20)
	l := FixedWindow(2, time.Minute)
	book := func(key string, after time.Duration) Decision {
		return must(m.Take(t.Context(), Request{Key: key, Limit: l, Cost: 1, MaxWait: time.Hour, At: midnight.Add(after)}))
	}
	for i, want := range []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute} {
		if d := book(fmt.Sprint("new", i), 0); d.RetryAfter != want {
			t.Errorf("newcomer %d: the turn comes in %s; want %s", i, d.RetryAfter, want)
		}
	}
	if d := ask(t, m, "new0", l, 1, time.Minute); d.Allowed() || d.RetryAfter != time.Minute {
		t.Errorf("before the last turn: %+v", d)
	}
	for i := range 3 * 20 {
		if err := m.Reset(t.Context(), fmt.Sprint("known", i), FixedWindow(1, 24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if d := ask(t, m, "new1", l, 1, time.Minute); d.Allowed() || d.RetryAfter != time.Minute {
		t.Errorf("with a place of its own, before the last turn: %+v", d)
	}
	if d := book("new1", time.Minute); d.RetryAfter != time.Minute {
		t.Errorf("with a place of its own: the turn comes in %s", d.RetryAfter)
	}
}

// Of newcomers that ask together all are charged, or none.
func TestNewcomersBookTogether(t *testing.T) {
	m := fullMemory(t, 20)
	l := PerMinute(3)
	for step := range 10 {
		rs := []Request{
			{Key: "a", Limit: l, Cost: 2, MaxWait: time.Hour, At: midnight},
			{Key: "b", Limit: l, Cost: 2, MaxWait: time.Hour, At: midnight},
		}
		if step%2 == 0 {
			rs[0].Cost, rs[1].Cost = 1, 1
		}
		before := must(m.Take(t.Context(), Request{Key: "a", Limit: l, At: midnight})).ResetAfter
		ds := make([]Decision, 2)
		err := m.TakeAll(t.Context(), rs, ds)
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		granted := err == nil && ds[0].Within(time.Hour) && ds[1].Within(time.Hour)
		after := must(m.Take(t.Context(), Request{Key: "a", Limit: l, At: midnight})).ResetAfter
		want := before
		if granted {
			want += time.Duration(rs[0].Cost+rs[1].Cost) * 20 * time.Second
		}
		if after != want {
			t.Errorf("step %d, granted %v (%+v): as new in %s, before in %s", step, granted, ds, after, before)
		}
	}
}

// What is kept of turns goes when they have come, and with the key.
func TestTurnsGoAway(t *testing.T) {
	m := NewMemory(1000)
	l := PerSecond(1)
	kept := func() (n int) {
		for i := range m.shards {
			n += len(m.shards[i].ahead)
		}
		return n
	}
	book := func(key string, after time.Duration) {
		must(m.Take(t.Context(), Request{Key: key, Limit: l, Cost: 1, MaxWait: time.Hour, At: midnight.Add(after)}))
	}
	for range 3 {
		book("a", 0)
		book("b", 0)
	}
	if kept() != 2 {
		t.Fatalf("turns of %d keys are kept; want 2", kept())
	}
	if err := m.Reset(t.Context(), "a", l); err != nil {
		t.Fatal(err)
	}
	book("b", time.Minute)
	if kept() != 0 {
		t.Errorf("turns of %d keys are kept; want none", kept())
	}
	for i := range 3000 { // a flood that comes when they are over
		book("b", time.Hour)
		ask(t, m, fmt.Sprint("flood", i), l, 1, time.Hour+time.Duration(i)*time.Second)
	}
	if kept() > 1 {
		t.Errorf("turns of %d keys are kept", kept())
	}
}
