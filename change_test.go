package headgate

import (
	"math/big"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"
)

func limitOf(t testing.TB, text string) Limit {
	t.Helper()
	l, err := ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A change that is taken back leaves what it found: of a key that had taken all, and
// was asked about under other numbers, the first ones have left what they would have left
// had nothing changed.
func TestChangeTakenBackMintsNothing(t *testing.T) {
	for _, pair := range [][2]string{
		{"api=1000000/h", "api=1/d"},
		{"api=1000000/h", "api=7/d burst 10"},
		{"api=100000/m", "api=1/d"},
		{"api=1000/m", "api=1000/m burst 10"},
		{"api=1000/m", "api=1000/h burst 1000"},
		{"api=10000/30d stepped", "api=1/30d stepped"},
		{"api=100000/m stepped", "api=1/d stepped"},
		{"api=1000000/d stepped", "api=100/30d stepped"},
		{"api=60/m stepped", "api=1/s burst 60 stepped"},
		{"api=1000/h fixed-window", "api=10/m fixed-window"},
		{"api=1000/h fixed-window", "api=10/d fixed-window"},
		{"api=1000/h sliding-window", "api=10/m sliding-window"},
		{"api=1000/h sliding-window", "api=10/h sliding-window"},
		{"api=1000/h sliding-log", "api=10/m sliding-log"},
		{"api=1000/h sliding-log", "api=10/d sliding-log"},
	} {
		first, second := limitOf(t, pair[0]), limitOf(t, pair[1])
		for _, later := range []time.Duration{micro, 3 * time.Second, 90 * time.Second, 40 * time.Minute} {
			m, alone := NewMemory(10), NewMemory(10)
			ask(t, m, "k", first, first.Capacity(), 0)
			ask(t, alone, "k", first, first.Capacity(), 0)
			for _, at := range []time.Duration{micro, later, later + micro} {
				if ask(t, m, "k", second, second.Capacity(), at).Allowed() {
					ask(t, alone, "k", first, second.Capacity(), at)
				}
			}
			got, want := ask(t, m, "k", first, 0, later+2*micro), ask(t, alone, "k", first, 0, later+2*micro)
			if longer := second.Period() > first.Period() && !second.rule.isBucket(); got.Remaining != want.Remaining && !longer {
				t.Errorf("%v after %v, %v later: %d remain, and without it %d", first, second, later, got.Remaining, want.Remaining)
			} else if got.Remaining > want.Remaining {
				t.Errorf("%v after %v, %v later: %d remain, and without it only %d", first, second, later, got.Remaining, want.Remaining)
			}
		}
	}
}

// The progress within a period is not lost by asking for another version in the same
// microsecond, however often.
func TestSteppedVersionsAskedAtOnce(t *testing.T) {
	for _, c := range []struct{ large, small string }{
		{"api=10000/d stepped", "api=1/h stepped"},
		{"api=1000/h stepped", "api=1/m stepped"},
		{"api=60/m stepped", "api=1/s burst 60 stepped"},
	} {
		large, small := limitOf(t, c.large), limitOf(t, c.small)
		for _, apart := range []time.Duration{0, micro, time.Millisecond, time.Second} {
			m := NewMemory(10)
			ask(t, m, "k", large, large.Capacity(), 0)
			granted, rounds := 0, 0
			for at := time.Second; at < 20*large.Period(); at += small.Period() + time.Second {
				rounds++
				ask(t, m, "k", small, 1, at)
				if ask(t, m, "k", large, 1, at+apart).Allowed() {
					granted++
				}
			}
			if granted < rounds*18/20 {
				t.Errorf("%v with %v, %v apart: %d of %d granted, and all but those of one period would be alone", large, small, apart, granted, rounds)
			}
		}
	}
}

// A request that is refused under new numbers keeps no place longer than both versions
// take to be as at first sight.
func TestRefusedRequestKeepsNoPlace(t *testing.T) {
	for _, c := range []struct {
		old, young string
		both       time.Duration
	}{
		{"api=10000/m", "api=10/h", time.Hour},
		{"api=10000/d burst 10000", "api=10/s", 24 * time.Hour},
		{"api=10000/m stepped", "api=10/h stepped", time.Hour},
		{"api=1000/h fixed-window", "api=10/m fixed-window", time.Hour},
		{"api=1000/h sliding-window", "api=10/m sliding-window", 2 * time.Hour},
		{"api=100/h sliding-log", "api=10/m sliding-log", time.Hour},
	} {
		old, young := limitOf(t, c.old), limitOf(t, c.young)
		m := NewMemory(1000)
		for i := range 1000 {
			key := strconv.Itoa(i)
			ask(t, m, key, old, old.Capacity(), 0)
			if ask(t, m, key, young, young.Capacity(), micro).Allowed() {
				t.Fatalf("%v after all of %v: granted", young, old)
			}
		}
		for i := range 900 {
			key := "new" + strconv.Itoa(i)
			if d := ask(t, m, key, young, 1, c.both+time.Second); !d.Allowed() || !own(m, key, young) {
				t.Fatalf("%v after %v: newcomer %d finds no place: %+v", young, old, i, d)
			}
		}
		checkMarks(t, m)
	}
}

// checkMarks holds the slots of m to what lies beside them: it lies beside those that
// are marked, and nothing else does.
func checkMarks(t *testing.T, m *Memory) {
	t.Helper()
	for i := range m.shards {
		s := &m.shards[i]
		marks := 0
		for j := range s.slots {
			at := &s.slots[j]
			if at.a&marked == 0 {
				continue
			}
			marks++
			if at.vacant() {
				t.Fatalf("shard %d: a vacant slot is marked", i)
			}
			v := s.versionBeside(at, s.limits)
			if v.l == nil || v.l.algorithm != s.limits[at.tag&idMask].algorithm || v.l.id != s.limits[at.tag&idMask].id {
				t.Fatalf("shard %d: a state under %v lies beside one under %v", i, Limit{v.l}, Limit{s.limits[at.tag&idMask]})
			}
		}
		if marks != len(s.beside.kept) {
			t.Fatalf("shard %d: %d slots are marked, and %d states lie beside them", i, marks, len(s.beside.kept))
		}
	}
}

// A small store where keys come and go, limits change, groups are asked and keys reset:
// every path by which a slot is written or vacated.
func TestMarksOfSlots(t *testing.T) {
	texts := []string{
		"api=1000/m", "api=10/m", "api=1000/m burst 10", "api=7/h burst 3", "api=5/s burst 500", "b=100/m", "b=3/m",
		"api=1000/m stepped", "api=10/m stepped", "api=10/s burst 100 stepped", "api=100/m sliding-log", "api=10/s sliding-log",
		"api=100/m sliding-window", "api=5/s sliding-window", "api=100/m fixed-window", "api=9/h fixed-window",
	}
	most := 0
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := NewMemory(20 + random.IntN(60))
		var at time.Duration
		for range 1500 {
			l := limitOf(t, texts[random.IntN(len(texts))])
			r := Request{Key: strconv.Itoa(random.IntN(150)), Limit: l, Cost: random.Int64N(l.Capacity()+3) - l.Capacity()/4, At: midnight.Add(at)}
			switch random.IntN(12) {
			case 0:
				if err := m.Reset(t.Context(), r.Key, l); err != nil {
					t.Fatal(err)
				}
			case 1, 2:
				rs := []Request{r, {Key: r.Key + "2", Limit: limitOf(t, texts[random.IntN(len(texts))]), Cost: 1, At: r.At}}
				_ = m.TakeAll(t.Context(), rs, make([]Decision, 2)) // ErrFull is an answer, too
			default:
				_, _ = m.Take(t.Context(), r)
			}
			if at += time.Duration(random.Int64N(int64(time.Second))); random.IntN(40) == 0 {
				at += time.Duration(random.Int64N(int64(time.Hour)))
			}
			checkMarks(t, m)
			most = max(most, len(m.shards[0].beside.kept))
		}
	}
	if most < 5 {
		t.Errorf("at most %d states lay beside others: this tells little", most)
	}
}

// What a change of limits takes in memory is bounded, and is given back when it has
// passed.
func TestBytesOfOtherVersions(t *testing.T) {
	const keys = 1 << 18
	bytes := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	large, small := limitOf(t, "api=1000/m"), limitOf(t, "api=10/m")
	before := bytes()
	m := NewMemory(keys)
	each := func(l Limit, cost int64, after time.Duration) float64 {
		for i := range keys {
			_, _ = m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: cost, At: midnight.Add(after)})
		}
		return float64(bytes()-before) / keys
	}
	full, lowered, passed := each(large, 900, 0), each(small, 1, time.Second), each(small, 1, 10*time.Minute)
	t.Logf("%.0f bytes a key, %.0f after all were lowered, %.0f when that had passed", full, lowered, passed)
	if full > 34 || lowered > full+130 || passed > full+1 {
		t.Errorf("%.0f bytes a key, %.0f after all were lowered, %.0f when that had passed", full, lowered, passed)
	}
	runtime.KeepAlive(m)
}

// Most of it is given back while some still lies there.
func TestBesidesShrink(t *testing.T) {
	m := NewMemory(4000)
	large, small := limitOf(t, "api=1000/m"), limitOf(t, "api=10/m")
	for i := range 1000 {
		ask(t, m, strconv.Itoa(i), large, 900, 0)
		ask(t, m, strconv.Itoa(i), small, 1, time.Second)
	}
	s := &m.shards[0]
	if len(s.beside.kept) != 1000 {
		t.Fatalf("%d lie beside 1000", len(s.beside.kept))
	}
	for i := range 950 {
		ask(t, m, strconv.Itoa(i), small, 1, 10*time.Minute)
	}
	if n, peak := len(s.beside.kept), s.beside.peak; n != 50 || peak > 250 {
		t.Errorf("%d are left of 1000, in a map for %d", n, peak)
	}
	checkMarks(t, m)
}

// What was taken under a larger count can be given back under a smaller one.
func TestRefundBeyondALoweredCount(t *testing.T) {
	for i := range everyAlgorithm(1, time.Hour) {
		large, small := everyAlgorithm(60, time.Hour)[i].Named("api"), everyAlgorithm(50, time.Hour)[i].Named("api")
		m := NewMemory(10)
		ask(t, m, "k", large, 60, 0)
		if d := ask(t, m, "k", small, -20, 0); !d.Allowed() || d.Remaining < 10 {
			t.Errorf("%v: 20 of 60 given back: %+v", small, d)
		}
	}
}

// due and worth are never above the exact quotient, and below it by no more than what is
// left out for their rounding.
func TestDueAndWorth(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 0))
	for range 50_000 {
		old, l := anyStepped(random), anyStepped(random)
		elapsed := random.Int64N(old.period)
		tokens := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(elapsed), big.NewInt(old.refill)), big.NewInt(old.period))
		below(t, "due", due(old, elapsed), tokens)
		if !old.fasterThan(l) {
			exact := new(big.Rat).Mul(tokens, new(big.Rat).SetFrac(big.NewInt(l.period), big.NewInt(l.refill)))
			below(t, "worth", worth(old, l, elapsed), exact)
			if worth(old, l, elapsed) > elapsed {
				t.Fatalf("%d of a slower period is worth %d", elapsed, worth(old, l, elapsed))
			}
		}
	}
}

func anyStepped(random *rand.Rand) *rule {
	for {
		if l := anyLimit(random); l.algorithm == AlgorithmStepped {
			return l
		}
	}
}

func below(t *testing.T, what string, got int64, exact *big.Rat) {
	t.Helper()
	least := new(big.Rat).Sub(exact, big.NewRat(1, 1))
	least.Sub(least, new(big.Rat).Mul(exact, big.NewRat(2, 1<<50)))
	if r := new(big.Rat).SetInt64(got); r.Cmp(exact) > 0 || r.Cmp(least) < 0 {
		t.Fatalf("%s is %d, and exactly %s", what, got, exact.FloatString(3))
	}
}

// Nothing lies beside a state for longer than it can tell something.
func TestVersionsAreForgotten(t *testing.T) {
	large, small := limitOf(t, "api=1000/m"), limitOf(t, "api=10/m burst 5")
	beside := func(m *Memory) int { return len(m.shards[0].beside.kept) }
	lowered := func() *Memory {
		m := NewMemory(10)
		ask(t, m, "k", large, 1000, 0)
		ask(t, m, "k", small, 1, time.Second)
		if beside(m) != 1 {
			t.Fatalf("%d states lie beside that of a lowered limit", beside(m))
		}
		return m
	}
	m := lowered()
	for at := 2 * time.Second; at < 58*time.Second; at += time.Second {
		if ask(t, m, "k", small, 1, at); beside(m) != 1 {
			t.Fatalf("forgotten after %v", at)
		}
	}
	for at := time.Minute; at < 70*time.Second; at += time.Second {
		ask(t, m, "k", small, 1, at)
	}
	if beside(m) != 0 {
		t.Error("a full bucket that was not asked for a minute is still remembered")
	}
	if m = lowered(); ask(t, m, "k", small, 1, 10*time.Minute).Remaining != 4 || beside(m) != 0 {
		t.Error("something is remembered of a key at first sight")
	}
	m = lowered()
	for range 200 {
		ask(t, m, "k", small, -5, time.Second)
	}
	if beside(m) != 0 {
		t.Error("something is remembered of a key to which all was given back")
	}
	checkMarks(t, m)
}
