package headgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// ledger writes down all that it is told, in order.
type ledger struct {
	told  []any // Observed and Call
	seen  []Observed
	calls []Call
}

func (l *ledger) observer() Observer {
	return Observer{
		Decided: func(_ context.Context, o Observed) { l.told, l.seen = append(l.told, o), append(l.seen, o) },
		Called:  func(_ context.Context, c Call) { l.told, l.calls = append(l.told, c), append(l.calls, c) },
	}
}

func (l *ledger) outcomes() (words []string) {
	for _, o := range l.seen {
		words = append(words, o.Outcome.String())
	}
	return words
}

func (l *ledger) forget() { *l = ledger{} }

// observing is a store around store, and the ledger of what is told of it.
func observing(t *testing.T, store Store) (Store, *ledger) {
	t.Helper()
	l := new(ledger)
	return must(Observe(store, l.observer())), l
}

func TestObserveWithNothingIsTheStore(t *testing.T) {
	m := NewMemory(0)
	if s := must(Observe(m, Observer{})); s != Store(m) {
		t.Errorf("Observe with no functions is %T; want the store itself", s)
	}
}

// Each way to ask, under each algorithm, and what is told of it.
func TestOutcomes(t *testing.T) {
	for _, limit := range everyAlgorithm(2, time.Minute) {
		t.Run(limit.Algorithm().String(), func(t *testing.T) {
			s, l := observing(t, NewMemory(0))
			for _, step := range []struct {
				request Request
				want    Outcome
			}{
				{Request{Cost: 0}, OutcomeLooked},
				{Request{Cost: 1}, OutcomeAllowed},
				{Request{Cost: 2}, OutcomeDenied},
				{Request{Cost: 3, MaxWait: time.Hour}, OutcomeDenied}, // never
				{Request{Cost: 1, MaxWait: time.Hour}, OutcomeAllowed},
				{Request{Cost: 0}, OutcomeLooked},
				{Request{Cost: -1}, OutcomeReturned},
				{Request{Cost: 1}, OutcomeAllowed},
				{Request{Cost: 1, MaxWait: time.Second}, OutcomeDenied},
				{Request{Cost: 1, MaxWait: time.Hour, Ticket: 7}, OutcomeBooked},
				{Request{Cost: 0, Ticket: 7}, OutcomeLooked},
				{Request{Cost: 1}, OutcomeDenied},
				{Request{Cost: -1, Ticket: 7}, OutcomeReturned},
				{Request{Cost: -1, Ticket: 8}, OutcomeDenied}, // which nobody has
				{Request{Cost: 0, Ticket: 8}, OutcomeDenied},
			} {
				l.forget()
				step.request.Key, step.request.Limit, step.request.At = "k", limit, midnight.Add(time.Second)
				d, err := s.Take(t.Context(), step.request)
				want := Observed{Request: step.request, Decision: d, Outcome: step.want}
				if err != nil || len(l.seen) != 1 || l.seen[0] != want {
					t.Errorf("take %d with ticket %d within %s: %v\ntold %+v\nwant %+v", step.request.Cost, step.request.Ticket, step.request.MaxWait, err, l.seen, want)
				}
				if len(l.calls) != 1 || l.calls[0].Method != "Take" || l.calls[0].Requests != 1 || l.calls[0].Err != nil {
					t.Errorf("take %d: told of the call %+v", step.request.Cost, l.calls)
				}
			}
		})
	}
}

func TestOutcomesOfGroups(t *testing.T) {
	one, two, slow := FixedWindow(1, time.Minute).Named("one"), FixedWindow(2, time.Minute).Named("two"), FixedWindow(1, time.Hour).Named("slow")
	s, l := observing(t, NewMemory(0))
	for _, step := range []struct {
		rs   []Request
		want string
	}{
		{[]Request{{Limit: one, Cost: 1}, {Limit: two, Cost: 1}}, "[allowed allowed]"},
		{[]Request{{Limit: one, Cost: 1}, {Limit: two, Cost: 1}}, "[denied spared]"},
		{[]Request{{Limit: two, Cost: 1}, {Limit: one, Cost: 1}, {Limit: slow, Cost: 0}}, "[spared denied looked]"},
		{[]Request{{Limit: two, Cost: -1}, {Limit: one, Cost: 1}}, "[spared denied]"},
		{[]Request{{Limit: two, Cost: -1}, {Limit: one, Cost: 0}}, "[returned looked]"},
		{[]Request{{Limit: two, Cost: 3}, {Limit: one, Cost: 2}}, "[denied denied]"},
		// A ticket that nobody has refuses all.
		{[]Request{{Key: "c", Limit: two, Cost: 1}, {Limit: one, Ticket: 7}}, "[spared denied]"},
		{[]Request{{Limit: two, Cost: -1}, {Limit: one, Cost: -1, Ticket: 7}, {Limit: slow}}, "[spared denied looked]"},
		{[]Request{{Limit: slow, Cost: 1}, {Limit: two, Cost: 2, MaxWait: time.Hour}}, "[allowed allowed]"},
		// One who does not wait, and one whose turn comes in a minute: the second refuses, though it would wait itself.
		{[]Request{{Key: "b", Limit: slow, Cost: 1}, {Limit: one, Cost: 1, MaxWait: time.Hour}}, "[spared denied]"},
		{[]Request{{Key: "b", Limit: slow, Cost: 1, MaxWait: time.Hour}, {Limit: one, Cost: 1, MaxWait: time.Hour}}, "[booked booked]"},
		{nil, "[]"},
	} {
		l.forget()
		for i := range step.rs {
			step.rs[i].At = midnight
		}
		ds := make([]Decision, len(step.rs))
		if err := s.TakeAll(t.Context(), step.rs, ds); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.outcomes()); got != step.want {
			t.Errorf("%+v: %s; want %s", step.rs, got, step.want)
		}
		for i, o := range l.seen {
			if o.Request != step.rs[i] || o.Decision != ds[i] || o.Err != nil {
				t.Errorf("request %d: told %+v; answered %+v", i, o, ds[i])
			}
		}
		if len(l.calls) != 1 || l.calls[0].Method != "TakeAll" || l.calls[0].Requests != len(step.rs) {
			t.Errorf("told of the call %+v", l.calls)
		}
	}
}

// What is told is what was done: for random groups, whose outcomes are compared with
// what the state of each key and limit became, rather than with the answers.
func TestOutcomesAreWhatWasDone(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := NewMemory(0)
	s, l := observing(t, m)
	limits := everyAlgorithm(4, time.Minute)
	met := map[Outcome]int{}
	for i := range often(20_000) {
		after := time.Duration(i) * 2 * time.Second
		look := func(r Request) Decision { return ask(t, m, r.Key, r.Limit, 0, after) }
		var rs []Request
		var before []Decision
		for _, n := range random.Perm(len(limits))[:1+random.IntN(3)] {
			r := Request{Key: fmt.Sprint(random.IntN(3)), Limit: limits[n], Cost: random.Int64N(8) - 2, MaxWait: time.Duration(random.IntN(3)) * 20 * time.Second, At: midnight.Add(after)}
			if r.Cost <= 0 && random.IntN(4) == 0 {
				r.Ticket = 7 // which nobody has
			}
			rs, before = append(rs, r), append(before, look(r))
		}
		l.forget()
		ds := make([]Decision, len(rs))
		if err := s.TakeAll(t.Context(), rs, ds); err != nil {
			t.Fatal(err)
		}
		if Granted(rs, ds) == slices.Contains(l.outcomes(), "denied") {
			t.Fatalf("step %d: granted, with %v", i, l.outcomes())
		}
		for j, o := range l.seen {
			met[o.Outcome]++
			if now := look(rs[j]); !was(o, l.outcomes(), before[j], now) {
				t.Fatalf("step %d: %s among %v of %+v, before %+v, after %+v", i, o.Outcome, l.outcomes(), rs, before[j], now)
			}
		}
	}
	if len(met) != 6 {
		t.Errorf("outcomes met: %v; want all but failed", met)
	}
}

// was says whether the outcome of o, one of all, may be what a look saw before and after.
func was(o Observed, all []string, before, after Decision) bool {
	refused, booked := slices.Contains(all, "denied"), slices.Contains(all, "booked")
	fits := before.Remaining >= o.Request.Cost
	switch o.Outcome {
	case OutcomeAllowed:
		return !refused && !booked && fits && after != before
	case OutcomeBooked: // until the turn has come, nobody passes
		return !refused && !slices.Contains(all, "allowed") && after.Remaining == 0
	case OutcomeDenied:
		return (!fits || len(all) > 1 || o.Request.Ticket != 0) && after == before
	case OutcomeSpared:
		return refused && after == before
	case OutcomeReturned: // at the turn of all, if that is booked
		return !refused && (booked || after.Remaining >= before.Remaining)
	case OutcomeLooked:
		return after == before
	}
	return false
}

// slowStore answers after a while, or fails.
type slowStore struct {
	*Memory

	takes time.Duration
	err   error
}

func (s *slowStore) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(s.takes)
	if s.err != nil {
		return Decision{}, s.err
	}
	return s.Memory.Take(ctx, r)
}

func (s *slowStore) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	time.Sleep(2 * s.takes)
	if s.err != nil {
		ds[0] = Decision{Limit: rs[0].Limit} // what a store leaves there when it fails is nobody's business
		return s.err
	}
	return s.Memory.TakeAll(ctx, rs, ds)
}

func (s *slowStore) Reset(ctx context.Context, key string, l Limit) error {
	time.Sleep(3 * s.takes)
	if s.err != nil {
		return s.err
	}
	return s.Memory.Reset(ctx, key, l)
}

func TestObservedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, broken := range []error{nil, errors.New("no answer")} {
			s, l := observing(t, &slowStore{NewMemory(0), 7 * time.Millisecond, broken})
			one, two := FixedWindow(1, time.Minute), FixedWindow(2, time.Minute)
			_, err := s.Take(t.Context(), Request{Limit: one, Cost: 1})
			ds := make([]Decision, 2)
			errAll := s.TakeAll(t.Context(), []Request{{Key: "k", Limit: one, Cost: 1}, {Key: "k", Limit: two, Cost: 1}}, ds)
			errReset := s.Reset(t.Context(), "k", one)
			if err != broken || errAll != broken || errReset != broken { //nolint:errorlint // passed on as it is
				t.Errorf("errors %v, %v, %v; want %v", err, errAll, errReset, broken)
			}
			want := []Call{{"Take", 1, 7 * time.Millisecond, broken}, {"TakeAll", 2, 14 * time.Millisecond, broken}, {"Reset", 0, 21 * time.Millisecond, broken}}
			if !slices.Equal(l.calls, want) {
				t.Errorf("told %+v\nwant %+v", l.calls, want)
			}
			outcomes := "[allowed allowed allowed]"
			if broken != nil {
				outcomes = "[failed failed failed]"
			}
			if got := fmt.Sprint(l.outcomes()); got != outcomes {
				t.Errorf("outcomes %s; want %s", got, outcomes)
			}
			var order []byte // decisions, then the call
			for _, o := range l.told {
				seen, decided := o.(Observed)
				if decided && (seen.Err != broken || broken != nil && seen.Decision != (Decision{})) { //nolint:errorlint // as above
					t.Errorf("told %+v; want the error %v, and no decision with it", seen, broken)
				}
				order = append(order, map[bool]byte{true: 'd', false: 'c'}[decided])
			}
			if string(order) != "dcddcc" {
				t.Errorf("order %s; want dcddcc", order)
			}
		}
	})
}

// All that a limiter does goes by the seam, and so is observed.
func TestObservedLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := observing(t, NewMemory(0))
		limiter := must(NewLimiter(s, FixedWindow(2, time.Minute)))
		ctx := t.Context()
		must(limiter.Allow(ctx, "k"))
		must(limiter.Peek(ctx, "k"))
		must(limiter.Refund(ctx, "k", 1))
		must(limiter.AllowN(ctx, "k", 2))
		must(limiter.Allow(ctx, "k"))
		if err := limiter.Wait(ctx, "k"); err != nil {
			t.Error(err)
		}
		r := must(limiter.Reserve(ctx, "k", 2))
		if err := r.Cancel(ctx); err != nil {
			t.Error(err)
		}
		if err := limiter.Reset(ctx, "k"); err != nil {
			t.Error(err)
		}
		want := []string{"allowed", "looked", "returned", "allowed", "denied", "booked", "booked", "returned"}
		if got := l.outcomes(); !slices.Equal(got, want) {
			t.Errorf("outcomes %s; want %s", got, want)
		}
		if last := l.calls[len(l.calls)-1]; last.Method != "Reset" {
			t.Errorf("the last call is %+v; want a Reset", last)
		}
	})
}

// Only what is asked for is done.
func TestObserverWithOneFunction(t *testing.T) {
	decided, called := 0, 0
	countDecided := must(Observe(NewMemory(0), Observer{Decided: func(context.Context, Observed) { decided++ }}))
	countCalled := must(Observe(NewMemory(0), Observer{Called: func(context.Context, Call) { called++ }}))
	l := FixedWindow(1, time.Minute)
	for _, s := range []Store{countDecided, countCalled} {
		must(s.Take(t.Context(), Request{Limit: l, Cost: 1}))
		if err := s.TakeAll(t.Context(), []Request{{Limit: l, Cost: 1}}, make([]Decision, 1)); err != nil {
			t.Error(err)
		}
		if err := s.Reset(t.Context(), "", l); err != nil {
			t.Error(err)
		}
	}
	if decided != 2 || called != 3 {
		t.Errorf("told of %d decisions and %d calls; want 2 and 3", decided, called)
	}
}

// A function that panics does so in its caller, who can go on, and the store with him.
func TestObserverThatPanics(t *testing.T) {
	s := must(Observe(NewMemory(0), Observer{Decided: func(_ context.Context, o Observed) {
		if o.Request.Key == "bad" {
			panic("observer")
		}
	}}))
	l := FixedWindow(1, time.Minute)
	func() {
		defer func() {
			if r := recover(); r != "observer" {
				t.Errorf("recovered %v; want the observer's panic", r)
			}
		}()
		must(s.Take(t.Context(), Request{Key: "bad", Limit: l, Cost: 1, At: midnight}))
	}()
	if d := ask(t, s, "good", l, 1, 0); !d.Allowed() {
		t.Errorf("after the panic: %+v", d)
	}
	if d := ask(t, s.(*observed).store, "bad", l, 1, 0); d.Allowed() {
		t.Errorf("the decision was made and charged before the panic; now %+v", d)
	}
}

func TestOutcomeNames(t *testing.T) {
	for o, want := range map[Outcome]string{0: "none", OutcomeAllowed: "allowed", OutcomeFailed: "failed", OutcomeFailed + 1: "none", 255: "none"} {
		if o.String() != want {
			t.Errorf("outcome %d is %q; want %q", o, o, want)
		}
	}
}
