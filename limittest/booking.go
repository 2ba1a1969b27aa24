package limittest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// bookings are what must be true of grants that are booked ahead.
var bookings = []check{
	{"callers that race get every start time once", racingBookers},
	{"bookings take the whole rate", bookedRate},
	{"nothing is granted before a start time that was booked", noOvertaking},
	{"a group has one start time", commonStart},
	{"a group with a refused cancel changes nothing", refusedCancel},
	{"a group is cancelled at its common start time", groupCancel},
	{"a booking that is cancelled leaves no trace", cancelledBookings},
	{"a cancel does not move time back past a start of a group", lateStarts},
	{"a cancel of a start from before a reset changes nothing", cancelAfterReset},
	{"a cancel does not move time back to where a log has dropped grants", cancelByAnEarlierClock},
	{"a clock that stepped back keeps nobody waiting for a group", groupAfterTheClockSteppedBack},
	{"rare cancels are decided as in memory", rareCancels},
	{"what a late cancel or refund costs", lateCancels},
	{"only a grant sets the start time", startOfGrants},
	{"a log that is too long for its group", tooLongTogether},
}

const year = 365 * 24 * time.Hour

// racingBookers book at one instant: the start times are those of one patient caller.
func racingBookers(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		book := func(key string) time.Time {
			r := headgate.Request{Key: key + text, Limit: l, Cost: 9, MaxWait: year, At: epoch}
			r.Start = new(time.Time)
			if d := take(t, s, r); !r.Start.Equal(epoch.Add(d.RetryAfter)) {
				t.Errorf("%s: start %s, %s", text, r.Start, describe(d))
			}
			return *r.Start
		}
		var mu sync.Mutex
		var got, want []time.Time
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 4 {
					start := book("race ")
					mu.Lock()
					got = append(got, start)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for range 64 {
			want = append(want, book("alone "))
		}
		slices.SortFunc(got, time.Time.Compare)
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s: start times %s; want %s", text, got, want)
		}
	}
}

// bookedRate books 100 bursts at one instant. The last starts when all but the first has
// flowed in, rounded up to a microsecond once.
func bookedRate(t *testing.T, s headgate.Store) {
	const cost, times = 1000, 100
	for _, text := range []string{"3/s", "7000/h", "1.5/s", "999983/s", "11/7ms"} {
		l := parse(t, text+" burst 1001")
		r := headgate.Request{Key: "rate", Limit: l, Cost: cost, MaxWait: year, At: epoch}
		var wait time.Duration
		for range times {
			wait = take(t, s, r).RetryAfter
		}
		rate, unit := rate(l)
		exact := time.Duration(ceilDiv((cost*times-(cost+1))*unit, rate)) * time.Microsecond
		if wait != exact {
			t.Errorf("%s: the last of %d starts after %s; want %s", text, times, wait, exact)
		}
	}
}

// noOvertaking asks, with and without waiting, while a start time is ahead.
func noOvertaking(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		ask := func(cost int64, after, wait time.Duration) headgate.Decision {
			r := headgate.Request{Key: "overtake", Limit: l, Cost: cost, MaxWait: wait}
			r.At = epoch.Add(after)
			return take(t, s, r)
		}
		ask(50, 0, 0)
		start := ask(60, 0, year).RetryAfter
		for _, back := range []time.Duration{0, -time.Second, start - time.Microsecond} {
			for _, cost := range []int64{0, 1, 40} {
				if d := ask(cost, back, 0); d.RetryAfter < start-back || d.Remaining != 0 {
					t.Errorf("%s: a cost of %d at %s, before %s: %s", text, cost, back, start,
						describe(d))
				}
			}
			if d := ask(-1, back, 0); !d.Allowed() || d.Remaining != 0 {
				t.Errorf("%s: a refund at %s, before %s: %s", text, back, start, describe(d))
			}
		}
		if d := ask(3, start, 0); !d.Allowed() {
			t.Errorf("%s: the refunded 3 at the start at %s: %s", text, start, describe(d))
		}
	}
}

// commonStart books groups of two limits of which now one and now the other comes last.
func commonStart(t *testing.T, s headgate.Store) {
	starts := []time.Duration{0, time.Second, 2 * time.Second, time.Minute, 61 * time.Second,
		62 * time.Second, 2 * time.Minute}
	second, minute := parse(t, "second=1/s"), parse(t, "minute=3/m fixed-window")
	rs := []headgate.Request{
		{Key: "group", Limit: second, Cost: 1, At: epoch, MaxWait: 2 * time.Minute},
		{Key: "group", Limit: minute, Cost: 1, At: epoch, MaxWait: time.Hour},
		{Key: "group", Limit: parse(t, "peek=3/m"), At: epoch},
		{Key: "group", Limit: parse(t, "refund=3/m"), Cost: -1, At: epoch},
	}
	for i, want := range starts {
		rs[0].Start, rs[1].Start = new(time.Time), new(time.Time)
		ds := takeAll(t, s, rs...)
		for j, want := range []time.Duration{want, want, 0, 0} {
			if ds[j].RetryAfter != want {
				t.Errorf("group %d, part %d: %s; want a wait of %s", i, j, describe(ds[j]), want)
			}
		}
		if at := epoch.Add(want); !rs[0].Start.Equal(at) || !rs[1].Start.Equal(at) {
			t.Errorf("group %d: starts %s and %s; want %s", i, rs[0].Start, rs[1].Start, at)
		}
	}
	ds := takeAll(t, s, rs...)
	if ds[0].RetryAfter != 121*time.Second || ds[1].RetryAfter != 2*time.Minute {
		t.Errorf("a start in 121 s is too late for one: %s; %s", describe(ds[0]), describe(ds[1]))
	}
	if d := take(t, s, rs[1]); d.RetryAfter != 2*time.Minute {
		t.Errorf("the refused group charged its second limit: %s", describe(d))
	}
}

// refusedCancel cancels in a group a grant that is not the last one.
func refusedCancel(t *testing.T, s headgate.Store) {
	booked, plain := parse(t, "booked=1/s"), parse(t, "plain=5/m")
	for _, text := range everyAlgorithm {
		other := parse(t, text)
		key := "refused " + text
		ask := func(l headgate.Limit, cost int64) headgate.Request {
			return headgate.Request{Key: key, Limit: l, Cost: cost, MaxWait: year, At: epoch}
		}
		for range 3 {
			take(t, s, ask(booked, 1)) // the last starts after 2 s
		}
		take(t, s, ask(other, 10))
		take(t, s, ask(plain, 3))
		cancel := ask(booked, -1)
		cancel.Start = new(epoch.Add(time.Second))
		ds := takeAll(t, s, ask(other, 5), cancel, ask(plain, -1))
		wantParts(t, text, ds, [3]time.Duration{0, headgate.Never, 0}, [3]int64{90, 0, 2})
		cancel.Start = new(epoch.Add(2 * time.Second))
		ds = takeAll(t, s, ask(other, 5), cancel, ask(plain, -1))
		wantParts(t, text, ds, [3]time.Duration{}, [3]int64{85, 0, 3})
	}
}

func wantParts(
	t *testing.T, text string, ds []headgate.Decision, retry [3]time.Duration, remaining [3]int64,
) {
	t.Helper()
	for i, d := range ds {
		if d.RetryAfter != retry[i] || d.Remaining != remaining[i] {
			t.Errorf("%s, part %d: %s; want %d, %s", text, i, describe(d), remaining[i], retry[i])
		}
	}
}

// groupCancel books two groups, and cancels the second and then the first.
func groupCancel(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		rs := []headgate.Request{
			{Key: "cancel " + text, Limit: parse(t, text), Cost: 60, MaxWait: year, At: epoch},
			{Key: "cancel " + text, Limit: parse(t, "slow=1/h"), Cost: 1, MaxWait: year, At: epoch},
		}
		var starts [3]time.Time
		for i := range starts {
			rs[0].Start, rs[1].Start = &starts[i], &starts[i]
			takeAll(t, s, rs...)
		}
		if starts[2].Sub(epoch) != 2*time.Hour {
			t.Fatalf("%s: the third group starts at %s; want 2 h", text, starts[2])
		}
		rs[0].Cost, rs[1].Cost = -60, -1
		rs[0].Start, rs[1].Start = &starts[1], &starts[1]
		for _, d := range takeAll(t, s, rs...) {
			if d.RetryAfter != headgate.Never {
				t.Errorf("%s: not the last group: %s", text, describe(d))
			}
		}
		rs[0].Start, rs[1].Start = &starts[2], &starts[2]
		if ds := takeAll(t, s, rs...); !ds[0].Allowed() || !ds[1].Allowed() {
			t.Errorf("%s: the last group: %s; %s", text, describe(ds[0]), describe(ds[1]))
		}
		rs[0].Cost, rs[1].Cost = 60, 1
		rs[0].Start, rs[1].Start = new(time.Time), new(time.Time)
		if takeAll(t, s, rs...); !rs[0].Start.Equal(starts[2]) || !rs[1].Start.Equal(starts[2]) {
			t.Errorf("%s: the next group starts at %s; want %s", text, rs[0].Start, starts[2])
		}
	}
}

// startOfGrants sets the start times of all grants, and leaves those of denials, peeks and refunds.
func startOfGrants(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "start", Limit: parse(t, text), Cost: 70, At: epoch}
		for i, c := range []struct {
			cost int64
			wait time.Duration
			set  bool
		}{
			{70, 0, true}, {70, time.Microsecond, false}, {0, year, false}, {101, year, false},
			{-10, 0, false}, {30, year, true}, {70, year, true}, {-100, 0, false},
		} {
			want := epoch.Add(-time.Hour)
			r.Cost, r.MaxWait, r.Start = c.cost, c.wait, new(want)
			d := take(t, s, r)
			if c.set {
				want = epoch.Add(d.RetryAfter)
			}
			if !r.Start.Equal(want) {
				t.Errorf("%s, row %d: start %s; want %s", text, i, r.Start, want)
			}
		}
	}
}

// lateStarts books two grants later than they need be, each together with one of a slower limit,
// and a third after them. Once, a cancel of the third moved time back to the first, which could
// be cancelled then while the second stayed: 15 of 10 started at once.
func lateStarts(t *testing.T, s headgate.Store) {
	l := parse(t, "10/s")
	book := func(slow string, cost int64) headgate.Request {
		other := headgate.Request{Key: "late", Limit: parse(t, slow), Cost: 1, At: epoch}
		take(t, s, other)
		r := headgate.Request{Key: "late", Limit: l, Cost: cost, At: epoch, MaxWait: time.Minute,
			Start: new(time.Time)}
		other.MaxWait = time.Minute
		takeAll(t, s, r, other)
		r.Cost, r.MaxWait = -cost, 0
		return r
	}
	first := book("1/400ms burst 1", 5)
	book("1/900ms burst 1", 5)
	third := book("1/ms burst 1", 5)
	take(t, s, third)
	take(t, s, first)
	r := headgate.Request{Key: "late", Limit: l, Cost: 10, At: epoch.Add(900 * time.Millisecond)}
	if d := take(t, s, r); d.Allowed() {
		t.Errorf("a whole bucket at the start of the second: %s", describe(d))
	}
}

// cancelAfterReset cancels a start time that was booked before a reset, while an earlier one is
// booked. If that moved time back, two callers would have the same start time.
func cancelAfterReset(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "reset " + text, Limit: parse(t, text), Cost: 60, MaxWait: year,
			At: epoch}
		book := func() time.Time {
			r.Start = new(time.Time)
			take(t, s, r)
			return *r.Start
		}
		book()
		book()
		book()
		before := book()
		if err := s.Reset(t.Context(), r.Key, r.Limit); err != nil {
			t.Fatal(err)
		}
		book()
		last := book()
		cancel := headgate.Request{Key: r.Key, Limit: r.Limit, Cost: -60, Start: &before, At: epoch}
		if d := take(t, s, cancel); d.RetryAfter != headgate.Never || !last.After(epoch) ||
			!before.After(last) {
			t.Errorf("%s: a cancel of %s, while %s is booked: %s", text, before, last, describe(d))
		}
		if next := book(); !next.After(last) {
			t.Errorf("%s: starts at %s and %s", text, last, next)
		}
	}
}

// cancelByAnEarlierClock books at 11 s and cancels at 6 s. The grant at 0 s was dropped at 11 s,
// and counts at 6 s.
func cancelByAnEarlierClock(t *testing.T, s headgate.Store) {
	l := parse(t, "2/10s sliding-log")
	ask := func(cost int64, after, wait time.Duration, start *time.Time) headgate.Decision {
		return take(t, s, headgate.Request{
			Key: "earlier", Limit: l, Cost: cost, MaxWait: wait, Start: start, At: epoch.Add(after),
		})
	}
	ask(1, 0, 0, nil)
	ask(1, 5*time.Second, 0, nil)
	start := new(time.Time)
	if ask(2, 11*time.Second, time.Minute, start); start.Sub(epoch) != 15*time.Second {
		t.Fatalf("booked for %s; want 15 s", start.Sub(epoch))
	}
	if d := ask(-2, 6*time.Second, 0, start); !d.Allowed() {
		t.Errorf("the cancel: %s", describe(d))
	}
	if d := ask(1, 6*time.Second, 0, nil); d.Allowed() {
		t.Errorf("a third of two in ten seconds: %s", describe(d))
	}
}

// groupAfterTheClockSteppedBack books two limits a millisecond ahead, because of one of them. The
// clock is an hour behind the last grant of the other, which goes on granting.
func groupAfterTheClockSteppedBack(t *testing.T, s headgate.Store) {
	busy := parse(t, "busy=1/ms burst 1")
	for _, text := range everyAlgorithm {
		behind := epoch.Add(-time.Hour)
		r := headgate.Request{Key: "stepped back " + text, Limit: parse(t, text), Cost: 2,
			At: epoch}
		other := headgate.Request{Key: r.Key, Limit: busy, Cost: 1, At: behind}
		take(t, s, r)
		take(t, s, other)
		r.At, r.MaxWait, other.MaxWait = behind, time.Minute, time.Minute
		r.Start = new(time.Time)
		ds := takeAll(t, s, r, other)
		if !r.Start.Equal(behind.Add(time.Millisecond)) || ds[0].Remaining != 96 {
			t.Errorf("%s: the group starts at %s: %s", text, r.Start, describe(ds[0]))
		}
		r.MaxWait = 0
		if d := take(t, s, r); !d.Allowed() || d.Remaining != 94 {
			t.Errorf("%s: alone, after the group: %s", text, describe(d))
		}
	}
}

// rareCancels compares s with a Memory: a cancel of more than its start took, in a group that
// started later than the bucket needed, one by a clock that is behind the log that it is of, one
// under other numbers, and one of several tokens of a window, after which fewer start earlier.
func rareCancels(t *testing.T, s headgate.Store) {
	steps, window := parse(t, "3/7s burst 10 stepped"), parse(t, "1/16s fixed-window")
	log, sliding := parse(t, "2/10s sliding-log"), parse(t, "10/s sliding-window")
	first, second := parse(t, "api=10/s"), parse(t, "api=3/s burst 20")
	memory := headgate.NewMemory()
	for name, groups := range map[string][][]headgate.Request{
		"steps": {
			{{Limit: steps, Cost: 10}}, {{Limit: window, Cost: 1}},
			{{Limit: steps, Cost: 5, MaxWait: year}, {Limit: window, Cost: 1, MaxWait: year}},
			{{Limit: steps, Cost: -9}}, {{Limit: steps, Cost: 1}},
		},
		"log": {
			{{Limit: log, Cost: 1, At: epoch.Add(-2 * time.Second)}},
			{{Limit: log, Cost: 1, At: epoch.Add(5 * time.Second)}},
			{{Limit: log, Cost: -1, At: epoch.Add(5 * time.Second)}},
			{{Limit: log, Cost: 2, MaxWait: year}}, {{Limit: log, Cost: -2}}, {{Limit: log,
				Cost: 1}},
		},
		"numbers": {
			{{Limit: first, Cost: 10}}, {{Limit: first, Cost: 4, MaxWait: year}},
			{{Limit: second, Cost: -4}}, {{Limit: second, Cost: 1, MaxWait: year}},
		},
		"sliding": {
			{{Limit: sliding, Cost: 10}}, {{Limit: sliding, Cost: 1, MaxWait: year}},
			{{Limit: sliding, Cost: 3, MaxWait: year}}, {{Limit: sliding, Cost: -3}},
			{{Limit: sliding, Cost: 1, MaxWait: year}},
		},
	} {
		var starts [2]time.Time
		for step, rs := range groups {
			var ds [2][]headgate.Decision
			for i, store := range []headgate.Store{s, memory} {
				for j := range rs {
					r := &rs[j]
					if r.Key = "rare " + name; r.At.IsZero() || r.At.Equal(epoch) {
						r.At, r.Start = epoch, &starts[i]
					}
				}
				ds[i] = takeAll(t, store, rs...)
			}
			if !slices.Equal(ds[0], ds[1]) || !starts[0].Equal(starts[1]) {
				t.Errorf("%s, step %d: %v, start %s; want %v, %s", name, step, ds[0], starts[0],
					ds[1], starts[1])
			}
		}
	}
}

// lateCancels reaches two bounds. A start that cannot be cancelled, because a later one is booked,
// makes the limit short by its n. A refund of n after the bucket has refilled lets n more pass.
func lateCancels(t *testing.T, s headgate.Store) {
	const n = 4
	l := parse(t, "10/s")
	r := headgate.Request{Key: "late", Limit: l, Cost: 10, MaxWait: year, At: epoch}
	take(t, s, r)
	r.Cost, r.Start = n, new(time.Time)
	take(t, s, r)
	cancel := headgate.Request{Key: "late", Limit: l, Cost: -n, Start: r.Start, At: epoch}
	r.Start = new(time.Time)
	take(t, s, r)
	if d := take(t, s, cancel); d.Allowed() || r.Start.Sub(epoch) != 2*n*time.Second/10 {
		t.Errorf("the cancel: %s; the other start: %s", describe(d), r.Start)
	}

	at, passed := epoch.Add(time.Minute), int64(0)
	for _, cost := range []int64{n, 10, -n, n, 1} {
		d := take(t, s, headgate.Request{Key: "refund", Limit: l, Cost: cost, At: at})
		if at = epoch.Add(2 * time.Minute); cost > 0 && d.Allowed() {
			passed += cost
		}
	}
	if passed != n+10+n {
		t.Errorf("%d passed; want %d", passed, n+10+n)
	}
}

// tooLongTogether asks for more than a log keeps, together with another limit, which must not be
// charged.
func tooLongTogether(t *testing.T, s headgate.Store) {
	log, other := headgate.SlidingLog(65535, time.Second), parse(t, "10/d fixed-window")
	booked := headgate.Request{Key: "k", Limit: log, Cost: 65535, MaxWait: time.Hour, At: epoch}
	take(t, s, booked)
	take(t, s, booked)
	also := headgate.Request{Key: "k", Limit: other, Cost: 1, MaxWait: time.Hour, At: epoch}
	if ds := takeAll(t, s, booked, also); ds[0].RetryAfter != headgate.Never {
		t.Errorf("three full windows in one log: %s", describe(ds[0]))
	}
	also.Cost = 0
	if d := take(t, s, also); d.Remaining != 10 {
		t.Errorf("a group that was denied took %d", 10-d.Remaining)
	}
}
