package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

var midnight = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// everyAlgorithm returns a limit of n in each period for each algorithm.
func everyAlgorithm(n int64, period time.Duration) []headgate.Limit {
	return []headgate.Limit{
		headgate.Per(n, period),
		headgate.SteppedTokenBucket(n, period),
		headgate.FixedWindow(n, period),
		headgate.SlidingWindow(n, period),
		headgate.SlidingLog(n, period),
	}
}

// ask takes cost of the key k at midnight.
func ask(
	t testing.TB, s headgate.Store, l headgate.Limit, cost int64,
) headgate.Decision {
	t.Helper()
	r := headgate.Request{Key: "k", Limit: l, Cost: cost, At: midnight}
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return d
}

// ledger records all reports in order.
type ledger struct {
	all    []any // Event and Call
	events []Event
	calls  []Call
}

func (l *ledger) observer() Observer {
	return Observer{
		Decided: func(_ context.Context, e Event) {
			l.all, l.events = append(l.all, e), append(l.events, e)
		},
		Called: func(_ context.Context, c Call) {
			l.all, l.calls = append(l.all, c), append(l.calls, c)
		},
	}
}

func (l *ledger) outcomes() (words []string) {
	for _, e := range l.events {
		words = append(words, e.Outcome.String())
	}
	return words
}

func (l *ledger) forget() { *l = ledger{} }

// observing returns a store around store, and the ledger of its reports.
func observing(t *testing.T, store headgate.Store) (headgate.Store, *ledger) {
	t.Helper()
	l := new(ledger)
	return must(New(store, l.observer())), l
}

func TestWithoutFunctionsNewReturnsTheStore(t *testing.T) {
	m := headgate.NewMemory()
	if s := must(New(m, Observer{}, Observer{})); s != headgate.Store(m) {
		t.Errorf("New with no functions is %T; want the store itself", s)
	}
}

func TestNewRefusesWhatIsNoStore(t *testing.T) {
	for _, none := range []headgate.Store{nil, (*headgate.Memory)(nil), new(headgate.Memory)} {
		s, err := New(none)
		if _, invalid := errors.AsType[*headgate.InvalidError](err); !invalid || s != nil {
			t.Errorf("New(%T): %v, %v", none, s, err)
		}
	}
}

func TestOutcomeOfEachKindOfRequest(t *testing.T) {
	ahead := midnight.Add(time.Hour)
	for _, limit := range everyAlgorithm(2, time.Minute) {
		t.Run(limit.Algorithm().String(), func(t *testing.T) {
			s, l := observing(t, headgate.NewMemory())
			for _, step := range []struct {
				request headgate.Request
				want    Outcome
			}{
				{headgate.Request{Cost: 0}, Peeked},
				{headgate.Request{Cost: 1}, Allowed},
				{headgate.Request{Cost: 2}, Denied},
				{headgate.Request{Cost: 3, MaxWait: time.Hour}, Denied}, // never fits
				{headgate.Request{Cost: 1, MaxWait: time.Hour}, Allowed},
				{headgate.Request{Cost: 0}, Peeked},
				{headgate.Request{Cost: -1}, Refunded},
				{headgate.Request{Cost: 1}, Allowed},
				{headgate.Request{Cost: 1, MaxWait: time.Second}, Denied},
				{headgate.Request{Cost: 1, MaxWait: time.Hour}, Reserved},
				{headgate.Request{Cost: 1}, Denied},
				{headgate.Request{Cost: 1, Force: true}, Denied},
				{headgate.Request{Cost: 0, Force: true}, Peeked},
				{headgate.Request{Cost: -9, Force: true}, Refunded},
				{headgate.Request{Cost: -1, Start: &ahead}, Denied}, // not the last start
			} {
				l.forget()
				step.request.Key, step.request.Limit = "k", limit
				step.request.At = midnight.Add(time.Second)
				d, err := s.Take(t.Context(), step.request)
				event := Event{Request: step.request, Decision: d, Outcome: step.want}
				if err != nil || !slices.Equal(l.events, []Event{event}) {
					t.Errorf("%v\nreported %+v\nwant %+v", err, l.events, event)
				}
				if len(l.calls) != 1 || l.calls[0].Method != "Take" || l.calls[0].Requests != 1 {
					t.Errorf("cost %d: reported the call %+v", step.request.Cost, l.calls)
				}
			}
		})
	}
}

func TestOutcomesOfGroups(t *testing.T) {
	one := headgate.FixedWindow(1, time.Minute).Named("one")
	two := headgate.FixedWindow(2, time.Minute).Named("two")
	slow := headgate.FixedWindow(1, time.Hour).Named("slow")
	wait := time.Hour
	s, l := observing(t, headgate.NewMemory())
	for _, step := range []struct {
		rs   []headgate.Request
		want string
	}{
		{[]headgate.Request{{Limit: one, Cost: 1}, {Limit: two, Cost: 1}}, "[allowed allowed]"},
		{[]headgate.Request{{Limit: one, Cost: 1}, {Limit: two, Cost: 1}}, "[denied rolled_back]"},
		{
			[]headgate.Request{{Limit: two, Cost: 1}, {Limit: one, Cost: 1},
				{Limit: slow, Cost: 0}},
			"[rolled_back denied peeked]",
		},
		{[]headgate.Request{{Limit: two, Cost: -1}, {Limit: one, Cost: 1}}, "[rolled_back denied]"},
		{[]headgate.Request{{Limit: two, Cost: -1}, {Limit: one, Cost: 0}}, "[refunded peeked]"},
		{[]headgate.Request{{Limit: two, Cost: 3}, {Limit: one, Cost: 2}}, "[denied denied]"},
		{
			[]headgate.Request{{Limit: slow, Cost: 1}, {Limit: two, Cost: 2, MaxWait: wait}},
			"[allowed allowed]",
		},
		// The first does not wait, so the second refuses, though it would wait itself.
		{
			[]headgate.Request{{Key: "b", Limit: slow, Cost: 1},
				{Limit: one, Cost: 1, MaxWait: wait}},
			"[rolled_back denied]",
		},
		{
			[]headgate.Request{
				{Key: "b", Limit: slow, Cost: 1, MaxWait: wait},
				{Limit: one, Cost: 1, MaxWait: wait},
			},
			"[reserved reserved]",
		},
		// Forced requests hold the others back as little as these do them.
		{
			[]headgate.Request{{Key: "c", Limit: two, Cost: 2, Force: true},
				{Limit: one, Cost: 2}, {Key: "e", Limit: two, Cost: 1}},
			"[allowed denied rolled_back]",
		},
		{
			[]headgate.Request{{Key: "c", Limit: two, Cost: 1, Force: true},
				{Key: "c", Limit: one, Cost: 1}, {Key: "d", Limit: two, Cost: 1}},
			"[denied allowed allowed]",
		},
		{nil, "[]"},
	} {
		l.forget()
		for i := range step.rs {
			step.rs[i].At = midnight
		}
		ds := make([]headgate.Decision, len(step.rs))
		if err := s.TakeAll(t.Context(), step.rs, ds); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.outcomes()); got != step.want {
			t.Errorf("%+v: %s; want %s", step.rs, got, step.want)
		}
		for i, e := range l.events {
			if e.Request != step.rs[i] || e.Decision != ds[i] || e.Err != nil {
				t.Errorf("request %d: reported %+v; answered %+v", i, e, ds[i])
			}
		}
		c := l.calls
		if len(c) != 1 || c[0].Method != "TakeAll" || c[0].Requests != len(step.rs) {
			t.Errorf("reported the call %+v", c)
		}
	}
}

// slowStore answers after a while, or fails.
type slowStore struct {
	*headgate.Memory

	takes time.Duration
	err   error
}

func (s *slowStore) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(s.takes)
	if s.err != nil {
		return headgate.Decision{}, s.err
	}
	return s.Memory.Take(ctx, r)
}

func (s *slowStore) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	time.Sleep(2 * s.takes)
	if s.err != nil {
		ds[0] = headgate.Decision{Limit: rs[0].Limit} // means nothing after an error
		return s.err
	}
	return s.Memory.TakeAll(ctx, rs, ds)
}

func (s *slowStore) Reset(ctx context.Context, key string, l headgate.Limit) error {
	time.Sleep(3 * s.takes)
	if s.err != nil {
		return s.err
	}
	return s.Memory.Reset(ctx, key, l)
}

func TestCallsAreReportedAfterTheirDecisions(t *testing.T) {
	for _, c := range []struct {
		err      error
		outcomes string
	}{
		{nil, "[allowed allowed allowed]"},
		{errors.New("no answer"), "[error error error]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, l := observing(t, &slowStore{headgate.NewMemory(), 7 * time.Millisecond, c.err})
			one, two := headgate.FixedWindow(1, time.Minute), headgate.FixedWindow(2, time.Minute)
			r := headgate.Request{Limit: one, Cost: 1}
			rs := []headgate.Request{{Key: "k", Limit: one, Cost: 1},
				{Key: "k", Limit: two, Cost: 1}}
			_, err := s.Take(t.Context(), r)
			errAll := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2))
			errReset := s.Reset(t.Context(), "k", one)
			same := err == c.err && errAll == c.err && errReset == c.err //nolint:errorlint // itself
			if !same {
				t.Errorf("errors %v, %v, %v; want %v", err, errAll, errReset, c.err)
			}
			want := []Call{
				{"Take", 1, 7 * time.Millisecond, c.err},
				{"TakeAll", 2, 14 * time.Millisecond, c.err},
				{"Reset", 0, 21 * time.Millisecond, c.err},
			}
			if !slices.Equal(l.calls, want) || fmt.Sprint(l.outcomes()) != c.outcomes {
				t.Errorf("reported %+v, %s\nwant %+v, %s", l.calls, l.outcomes(), want, c.outcomes)
			}
			var order strings.Builder
			for _, report := range l.all {
				e, decided := report.(Event)
				none := e.Decision == (headgate.Decision{})
				same := e.Err == c.err //nolint:errorlint // itself
				if decided && (!same || none != (c.err != nil)) {
					t.Errorf("reported %+v; want either a decision or the error %v", e, c.err)
				}
				order.WriteString(map[bool]string{true: "d", false: "c"}[decided])
			}
			if order.String() != "dcddcc" {
				t.Errorf("order %s; want dcddcc", order.String())
			}
		})
	}
}

func TestEachFunctionOfEachObserverIsCalledForWhatItAskedFor(t *testing.T) {
	decided, called := 0, 0
	countDecided := Observer{Decided: func(context.Context, Event) { decided++ }}
	countCalled := Observer{Called: func(context.Context, Call) { called++ }}
	l := headgate.FixedWindow(1, time.Minute)
	for i, c := range []struct {
		observers       []Observer
		decided, called int
	}{
		{[]Observer{countDecided}, 2, 0},
		{[]Observer{countCalled}, 0, 3},
		{[]Observer{countDecided, countCalled, countDecided}, 4, 3},
	} {
		decided, called = 0, 0
		s := must(New(headgate.NewMemory(), c.observers...))
		r := headgate.Request{Limit: l, Cost: 1}
		must(s.Take(t.Context(), r))
		all := s.TakeAll(t.Context(), []headgate.Request{r}, make([]headgate.Decision, 1))
		if err := errors.Join(all, s.Reset(t.Context(), "", l)); err != nil {
			t.Error(err)
		}
		if decided != c.decided || called != c.called {
			t.Errorf("%d: %d decisions and %d calls; want %d and %d",
				i, decided, called, c.decided, c.called)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	for o, want := range map[Outcome]string{
		0: "none", Allowed: "allowed", Failed: "error", Failed + 1: "none", 255: "none",
	} {
		if o.String() != want {
			t.Errorf("outcome %d is %q; want %q", o, o, want)
		}
	}
}
