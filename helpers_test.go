package headgate

import (
	"flag"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// midnight is where the timelines of these tests begin: an edge of every window
// that divides a day, and past, since a time that has not come yet makes no
// state stale.
var midnight = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// everyAlgorithm is a limit of n in each period, by each algorithm.
func everyAlgorithm(n int64, period time.Duration) []Limit {
	return []Limit{
		Per(n, period).Burst(n),
		SteppedTokenBucket(n, period).Burst(n),
		FixedWindow(n, period),
		SlidingWindow(n, period),
		SlidingLog(n, period),
	}
}

// ask takes cost of key at the given time after midnight.
func ask(t testing.TB, s Store, key string, l Limit, cost int64, after time.Duration) Decision {
	t.Helper()
	d, err := s.Take(t.Context(), Request{Key: key, Limit: l, Cost: cost, At: midnight.Add(after)})
	if err != nil {
		t.Fatalf("take %d of %q under %v at %v: %v", cost, key, l, after, err)
	}
	return d
}

// row is one request of a timeline, and the answer to it.
type row struct {
	after     time.Duration // since midnight
	cost      int64
	allowed   bool
	remaining int64
	retry     time.Duration
	reset     time.Duration
	remark    string
}

// play asks the rows one after the other, of one key.
func play(t *testing.T, s Store, l Limit, rows []row) {
	t.Helper()
	for i, r := range rows {
		d := ask(t, s, "key", l, r.cost, r.after)
		got := row{r.after, r.cost, d.Allowed(), d.Remaining, d.RetryAfter, d.ResetAfter, r.remark}
		if got != r {
			t.Errorf("%v: row %d (%s)\n got %+v\nwant %+v", l, i+1, r.remark, got, r)
		}
		if d.Limit != l {
			t.Errorf("%v: row %d was decided by %v", l, i+1, d.Limit)
		}
	}
}

const micro = time.Microsecond

// take is ask, so many microseconds after midnight.
func take(t *testing.T, s Store, key string, l Limit, cost, micros int64) Decision {
	t.Helper()
	return ask(t, s, key, l, cost, time.Duration(micros)*time.Microsecond)
}
