package limittest

import (
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// headrooms are what must be true of requests that leave tokens for others.
var headrooms = []check{
	{"each class gets what the others leave", classes},
	{"a class that leaves headroom never takes from it", keptForOthers},
	{"the wait is the first moment at which cost and headroom fit", headroomWait},
	{"a group with headrooms", headroomGroup},
	{"a peek with headroom", headroomPeek},
	{"headroom near 2^63", hugeHeadroom},
	{"headroom that no store accepts", badHeadroom},
	{"as many as there are", upTo},
}

// classes lets the class that leaves most come first: it gets the capacity less its headroom, and
// each later class what the ones before it left.
func classes(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		for _, class := range []struct{ headroom, granted int64 }{{50, 50}, {20, 30}, {0, 20}} {
			r := headgate.Request{Key: "classes", Limit: parse(t, text), Cost: 1,
				Headroom: class.headroom, At: epoch}
			granted := race(t, s, 8, 10, func(int) headgate.Request { return r })
			if granted != class.granted {
				t.Errorf("%s, headroom %d: %d granted; want %d", text, class.headroom, granted,
					class.granted)
			}
			if d := take(t, s, r); d.Remaining != class.headroom {
				t.Errorf("%s, headroom %d: %s; want all of it to remain", text, class.headroom,
					describe(d))
			}
		}
	}
}

// keptForOthers lets a class that leaves 30 race with one that takes 30 in all, which is never
// denied.
func keptForOthers(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "kept", Limit: parse(t, text), Cost: 1, At: epoch}
		batch := r
		batch.Headroom = 30
		var wg sync.WaitGroup
		wg.Go(func() { race(t, s, 16, 10, func(int) headgate.Request { return batch }) })
		for range 30 {
			wg.Go(func() {
				if d, err := s.Take(t.Context(), r); err != nil || !d.Allowed() {
					t.Errorf("%s: one of 30 without headroom: %s, %v", text, describe(d), err)
				}
			})
		}
		wg.Wait()
	}
}

// upTo lets callers race for up to 7 tokens each, under two limits: they get all of the smaller one
// together, each limit is charged what was granted, and only who finds nothing gets nothing.
func upTo(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		large := parse(t, strings.Replace(text, "/m", "/50w", 1)).Named("large")
		small := parse(t, strings.Replace(text, "100/m", "60/50w", 1)).Named("small")
		l, err := headgate.NewLimiter(s, large, small)
		if err != nil {
			t.Fatal(err)
		}
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				n, d, err := l.AllowUpTo(t.Context(), "up to", 7)
				if granted.Add(n); err != nil || n > 7 || d.Allowed() != (n > 0) {
					t.Errorf("%s: %d of 7: %s, %v", text, n, describe(d), err)
				}
			})
		}
		wg.Wait()
		if n := granted.Load(); n != 60 {
			t.Errorf("%s: 16 callers of 7 were granted %d of 60", text, n)
		}
		for limit, left := range map[headgate.Limit]int64{large: 40, small: 0} {
			d := take(t, s, headgate.Request{Key: "up to", Limit: limit})
			if d.Remaining != left {
				t.Errorf("%s: %s; want %d remaining", text, describe(d), left)
			}
		}
	}
}

func headroomWait(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "waits", Limit: parse(t, text), Cost: 60, At: epoch}
		take(t, s, r)
		r.Cost, r.Headroom = 10, 40
		d := take(t, s, r)
		if d.Allowed() || d.Remaining != 40 || d.RetryAfter <= 0 || d.RetryAfter == headgate.Never {
			t.Errorf("%s: 10 of 40 with a headroom of 40: %s", text, describe(d))
			continue
		}
		r.At = epoch.Add(d.RetryAfter - time.Microsecond)
		if early := take(t, s, r); early.RetryAfter != time.Microsecond {
			t.Errorf("%s: a microsecond too early: %s", text, describe(early))
		}
		r.At = epoch.Add(d.RetryAfter)
		if late := take(t, s, r); !late.Allowed() || late.Remaining < 40 {
			t.Errorf("%s: after the wait: %s", text, describe(late))
		}
	}
}

// headroomGroup takes requests with different headrooms together: all are granted, or none is
// charged, and a peek that would never be granted denies no other.
func headroomGroup(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		ask := func(limit string, cost, headroom int64) headgate.Request {
			return headgate.Request{Key: "group", Limit: l.Named(limit), Cost: cost,
				Headroom: headroom, At: epoch}
		}
		ds := takeAll(t, s, ask("a", 40, 60), ask("b", 10, 0), ask("c", 0, 100))
		if !ds[0].Allowed() || ds[0].Remaining != 60 || !ds[1].Allowed() || ds[1].Remaining != 90 ||
			ds[2].RetryAfter != headgate.Never || ds[2].Remaining != 100 {
			t.Errorf("%s: 40+60, 10 and a peek with 100: %s, %s, %s", text, describe(ds[0]),
				describe(ds[1]), describe(ds[2]))
		}
		ds = takeAll(t, s, ask("a", 1, 59), ask("b", 40, 51))
		if !ds[0].Allowed() || ds[1].Allowed() || ds[0].Remaining != 60 || ds[1].Remaining != 90 {
			t.Errorf("%s: 1+59 of 60, and 40+51 of 90: %s, %s; want neither charged", text,
				describe(ds[0]), describe(ds[1]))
		}
	}
}

func headroomPeek(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "peek", Limit: parse(t, text), Headroom: 99, At: epoch}
		if d := take(t, s, r); !d.Allowed() || d.Remaining != 100 {
			t.Errorf("%s: a peek that leaves 99 of 100: %s", text, describe(d))
		}
		take(t, s, headgate.Request{Key: "peek", Limit: r.Limit, Cost: 1, At: epoch})
		if d := take(t, s, r); d.Allowed() || d.RetryAfter == headgate.Never || d.Remaining != 99 {
			t.Errorf("%s: a peek that leaves 99 of 99: %s", text, describe(d))
		}
	}
}

func hugeHeadroom(t *testing.T, s headgate.Store) {
	for _, l := range []headgate.Limit{
		parse(t, "100/m"), parse(t, "100/m stepped"), parse(t, "100/m sliding-window"),
		parse(t, "100/m sliding-log"), headgate.FixedWindow(1<<53-1, time.Hour),
	} {
		for _, r := range []headgate.Request{
			{Cost: 1, Headroom: math.MaxInt64}, {Cost: math.MaxInt64, Headroom: 1},
			{Cost: math.MaxInt64, Headroom: math.MaxInt64}, {Headroom: math.MaxInt64},
			{Cost: 1<<53 - 1, Headroom: 1}, {Cost: 1, Headroom: 1<<53 - 1},
			{Cost: 1, Headroom: 1 << 56},
		} {
			r.Key, r.Limit, r.At = "huge headroom", l, epoch
			if d := take(t, s, r); d.RetryAfter != headgate.Never || d.Remaining != l.Capacity() {
				t.Errorf("%s: %s; want never, and nothing charged", show(r), describe(d))
			}
		}
	}
}

func badHeadroom(t *testing.T, s headgate.Store) {
	l := parse(t, "10/m")
	for _, r := range []headgate.Request{
		{Cost: 1, Headroom: -1}, {Headroom: math.MinInt64}, {Cost: -1, Headroom: 1},
		{Cost: 1, Headroom: 1, Force: true},
	} {
		r.Key, r.Limit, r.At = "bad headroom", l, epoch
		_, err := s.Take(t.Context(), r)
		e, ok := errors.AsType[*headgate.InvalidError](err)
		if !ok || e.Field != "headroom" {
			t.Errorf("%s: %v; want an InvalidError of headroom", show(r), err)
		}
	}
	r := headgate.Request{Key: "bad headroom", Limit: l, Cost: 1, Headroom: 1,
		MaxWait: time.Second, At: epoch}
	if _, err := s.Take(t.Context(), r); !errors.Is(err, headgate.ErrNoBooking) {
		t.Errorf("%s: %v; want ErrNoBooking", show(r), err)
	}
	if d := take(t, s, headgate.Request{Key: r.Key, Limit: l, At: epoch}); d.Remaining != 10 {
		t.Errorf("after these: %s; want nothing charged", describe(d))
	}
}
