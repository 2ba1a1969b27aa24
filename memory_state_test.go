package headgate_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

var stateLimits = []string{
	"a=3/s burst 20", "b=7/10s burst 21 stepped", "c=9/m fixed-window", "d=9/m sliding-window",
	"e=9/m sliding-log", "f=40/day tz Europe/Zurich",
}

// A store that has got the states of another decides as that one would have.
func TestState(t *testing.T) {
	for _, text := range stateLimits {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(7, 7))
		at := time.Now()
		m := headgate.NewMemory()
		for i := range 3000 {
			at = at.Add(time.Duration(random.IntN(3e6)) * time.Microsecond)
			r := headgate.Request{Key: fmt.Sprint(random.IntN(5)), Limit: l, Cost: random.Int64N(6) - 1, At: at}
			switch {
			case random.IntN(4) == 0 && r.Cost > 0:
				r.MaxWait = time.Duration(random.IntN(20)) * time.Second
			case random.IntN(9) == 0 && r.Cost > 0:
				r.Force = true
			}
			next := moved(t, m, l)
			want, err := m.Take(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := next.Take(t.Context(), r); err != nil || got != want {
				t.Fatalf("%s, request %d, %+v: %+v, %v; want %+v", text, i, r, got, err, want)
			}
		}
	}
}

// moved returns a store with the states of five keys of m.
func moved(t *testing.T, m *headgate.Memory, l headgate.Limit) *headgate.Memory {
	t.Helper()
	next := headgate.NewMemory()
	for i := range 5 {
		key := fmt.Sprint(i)
		state := m.State(key, l)
		if state == nil {
			continue
		}
		if err := next.SetState(key, l, state); err != nil {
			t.Fatal(err)
		}
		if again := next.State(key, l); !slices.Equal(again, state) {
			t.Fatalf("%s: %v is kept as %v", l, state, again)
		}
	}
	return next
}

// A key in its initial state has none, and numbers of another limit are refused.
func TestStateRefuses(t *testing.T) {
	m := headgate.NewMemory()
	l, log := headgate.PerHour(5).Named("l"), headgate.SlidingLog(5, time.Hour)
	if _, err := m.Take(t.Context(), headgate.Request{Key: "k", Limit: log, Cost: 2}); err != nil {
		t.Fatal(err)
	}
	state := m.State("k", log)
	if m.State("k", l) != nil || state == nil {
		t.Errorf("%v", state)
	}
	for name, bad := range map[string][]int64{
		"of a log": state, "none": {}, "cut off": state[:3], "too much": {0, 1, math.MaxInt64, 0, 0}, "negative": {0, 1, -1, 0, 0},
	} {
		err := m.SetState("k", l, bad)
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || m.State("k", l) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	small := headgate.NewMemorySize(1)
	if _, err := small.Take(t.Context(), headgate.Request{Key: "other", Limit: log, Cost: 1}); err != nil {
		t.Fatal(err)
	}
	if err := small.SetState("k", log, state); !errors.Is(err, headgate.ErrFull) {
		t.Errorf("in a full store: %v", err)
	}
}
