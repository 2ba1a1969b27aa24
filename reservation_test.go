package headgate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// refusing is a store that fails for a limit.
type refusing struct {
	Store
	limit Limit
}

func (s refusing) Take(ctx context.Context, r Request) (Decision, error) {
	if r.Limit == s.limit && r.Cost > 0 {
		return Decision{}, errors.New("no answer")
	}
	return s.Store.Take(ctx, r)
}

// Under several limits a reservation is given back by all of them, or by none; and of what was used
// beyond it, an error says what is not booked.
func TestReservationsUnderSeveralLimits(t *testing.T) {
	slow, fast := PerHour(10).Named("slow"), FixedWindow(100, time.Hour).Named("fast")
	m := NewMemory(0)
	l := must(NewLimiter(refusing{m, fast}, slow, fast))
	left := func() [2]int64 {
		ds := must(l.AllowEach(t.Context(), "k", 0, nil))
		return [2]int64{ds[0].Remaining, ds[1].Remaining}
	}
	a, b := must(l.Reserve(t.Context(), "k", 4)), must(l.Reserve(t.Context(), "k", 3))
	if err := a.Commit(t.Context(), 1); err != nil || left() != [2]int64{6, 96} {
		t.Errorf("after the commit of 1 of 4 beside 3: %v left, %v", left(), err)
	}
	err := must(l.Reserve(t.Context(), "k", 1)).Commit(t.Context(), 3)
	if want := "2 of 2 tokens beyond the reservation are not booked by fast, nor any by the 0 limits after it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("beyond the reservation: %v; want %s", err, want)
	}
	if left() != [2]int64{3, 95} {
		t.Errorf("after what was used beyond: %v left", left())
	}
	if err := l.SetLimits(PerHour(20).Burst(10).Named("slow"), fast); err != nil {
		t.Fatal(err)
	}
	if !must(l.Allow(t.Context(), "k")).Allowed() {
		t.Fatal("not allowed under new numbers")
	}
	before := left()
	if err := b.Cancel(t.Context()); !errors.Is(err, ErrTooLate) || left() != before {
		t.Errorf("too late under one limit: %v; %v left, and were %v before", err, left(), before)
	}
}
