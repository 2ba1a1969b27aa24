package fallback_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// What Open granted is taken back with nothing to do, while the store is gone and when it is back, in
// part and in full; what the store granted is the store's.
func TestReservationsOfOpen(t *testing.T) {
	for _, limits := range [][]headgate.Limit{{request("a=10/h").Limit}, {request("a=10/h").Limit, request("b=10/h").Limit}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreakable()
			s := newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1})
			l, err := headgate.NewLimiter(s, limits...)
			if err != nil {
				t.Fatal(err)
			}
			reserve := func() *headgate.Reservation {
				t.Helper()
				r, err := l.Reserve(t.Context(), "k", 4)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			settle := func(r *headgate.Reservation, used int64, want error) {
				t.Helper()
				if err := r.Commit(t.Context(), used); !errors.Is(err, want) {
					t.Errorf("settled at %d of 4: %v; want %v", used, err, want)
				}
			}
			atStore := reserve()
			b.how.Store(fails)
			for _, used := range []int64{0, 1, 4, 5} {
				settle(reserve(), used, nil)
			}
			settle(atStore, 0, fallback.ErrDegraded)
			all, part, late := reserve(), reserve(), reserve()
			b.how.Store(works)
			time.Sleep(2 * time.Second)
			settle(all, 0, nil)
			settle(part, 1, nil)
			settle(atStore, 0, nil)
			time.Sleep(headgate.DefaultHold)
			settle(late, 0, headgate.ErrTooLate)
			for _, l := range limits {
				if d := take(t, b, headgate.Request{Key: "k", Limit: l}); d.Remaining != 10 {
					t.Errorf("%d left of %s", d.Remaining, l.Name())
				}
			}
		})
	}
}

// No more of a ticket is taken back than was granted, for no longer than it is held, and in a group only
// if all of it was granted here: the store never counts what was not taken from it.
func TestTicketsOfOpen(t *testing.T) { synctest.Test(t, testTicketsOfOpen) }

func testTicketsOfOpen(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1, Pause: time.Nanosecond})
	at := time.Unix(1e9, 0)
	r := request("10/h")
	r.Cost, r.Ticket, r.Hold, r.At = 10, 7, time.Minute, at
	b.how.Store(fails)
	take(t, s, r)
	another := r
	another.Key = "another"
	take(t, s, another)
	denied := []headgate.Request{r, request("b=1/h")}
	denied[0].Ticket, denied[1].Cost = 8, 2
	if err := s.TakeAll(t.Context(), denied, make([]headgate.Decision, 2)); err != nil {
		t.Fatal(err)
	}
	r.Hold = 0
	ask := func(key string, cost int64, ticket uint64, after time.Duration) bool {
		t.Helper()
		r.Key, r.Cost, r.Ticket, r.At = key, cost, ticket, at.Add(after)
		d, err := s.Take(t.Context(), r)
		if err != nil && !errors.Is(err, fallback.ErrDegraded) {
			t.Fatal(err)
		}
		return err == nil && d.RetryAfter != headgate.Never
	}
	for _, how := range []int32{fails, works} {
		b.how.Store(how)
		time.Sleep(time.Millisecond) // a pause
		for i, c := range []struct {
			key    string
			cost   int64
			ticket uint64
			after  time.Duration
			known  bool
		}{
			{"k", 0, 7, time.Minute - time.Microsecond, true},
			{"k", 0, 7, time.Minute, false},
			{"k", -3, 7, 0, true},
			{"k", 0, 8, 0, false}, // refused in its group
			{"none", 0, 7, 0, false},
		} {
			if ask(c.key, c.cost, c.ticket, c.after) != c.known {
				t.Errorf("the store is %d, row %d: want known %v", how, i, c.known)
			}
		}
	}
	look := func(key string) headgate.Request {
		return headgate.Request{Key: key, Limit: r.Limit, Ticket: 7, At: at}
	}
	for _, c := range []struct {
		rs   []headgate.Request
		here bool
	}{
		{[]headgate.Request{look("k"), look("another")}, true},
		{[]headgate.Request{look("k"), look("none")}, false},
		{[]headgate.Request{look("k"), {Key: "charged", Limit: r.Limit, Cost: 1, At: at}}, false},
	} {
		ds := make([]headgate.Decision, 2)
		if err := s.TakeAll(t.Context(), c.rs, ds); err != nil || headgate.Granted(c.rs, ds) != c.here {
			t.Errorf("%+v: %+v, %v", c.rs, ds, err)
		}
	}
	if !ask("k", -20, 7, 0) || ask("k", -1, 7, 0) || !ask("another", -1, 7, 0) {
		t.Error("4 were left of one, and 10 of another")
	}
}

// What is remembered is bounded: the oldest goes first.
func TestManyTicketsOfOpen(t *testing.T) {
	const most = 1 << 16
	b := newBreakable()
	b.how.Store(fails)
	s := newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1, Pause: time.Hour})
	r := request("10/h")
	for i := range uint64(most + 10) {
		r.Ticket, r.Hold = i+1, time.Hour
		take(t, s, r)
	}
	r.Cost = 0
	var forgotten []uint64
	for i := range uint64(most + 10) {
		r.Ticket = i + 1
		if _, err := s.Take(t.Context(), r); err != nil {
			forgotten = append(forgotten, r.Ticket)
		}
	}
	if !slices.Equal(forgotten, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("%d forgotten, such as %v", len(forgotten), forgotten[:min(len(forgotten), 20)])
	}
}
