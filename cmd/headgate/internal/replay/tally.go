package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/headgate/headgate"
)

// tally decides each record under all limits and counts the decisions.
type tally struct {
	count

	trials []*trial
	detail *detailing // nil unless it is wanted
}

// trial is one of the limits. It has its own store, so that limits with the same name do not
// share state.
type trial struct {
	limit headgate.Limit
	store headgate.Store
	denials
}

// denials counts denied requests, by key and in all.
type denials struct {
	denied []int64 // by key; shorter if those after were never denied
	total  int64
	keys   int64 // that were denied
}

// roomy is more keys than any log has: a full store would be wrong about new keys.
const roomy = 1 << 30

func newTally(limits []headgate.Limit, n *keyIDs) *tally {
	t := &tally{count: count{names: n}}
	for _, l := range limits {
		t.trials = append(t.trials, &trial{limit: l, store: headgate.NewMemorySize(roomy)})
	}
	return t
}

// add decides r, which is not earlier than the record before.
func (t *tally) add(ctx context.Context, r record) error {
	t.count.add(r)
	q := headgate.Request{Key: t.names.keys[r.key], Cost: 1, At: time.UnixMicro(r.at)}
	for i, trial := range t.trials {
		q.Limit = trial.limit
		d, err := trial.store.Take(ctx, q)
		if err != nil {
			return fmt.Errorf("limit %s: %w", trial.limit, err)
		}
		if !d.Allowed() {
			trial.deny(r.key)
		}
		if t.detail != nil {
			t.detail.denied[i], t.detail.retry[i] = !d.Allowed(), d.RetryAfter
		}
	}
	if t.detail != nil {
		t.detail.add(r)
	}
	return nil
}

func (d *denials) deny(key uint32) {
	d.denied = grown(d.denied, key)
	if d.denied[key] == 0 {
		d.keys++
	}
	d.denied[key]++
	d.total++
}

// deniedKeys yields the keys that were denied.
func (d *denials) deniedKeys(yield func(deniedKey) bool) {
	for key, n := range d.denied {
		if n > 0 && !yield(deniedKey{uint32(key), n}) {
			return
		}
	}
}

// count counts the requests, by key and in all.
type count struct {
	names    *keyIDs
	asked    []int64 // by key
	requests int64
	from, to int64 // the first and the last record
	second   int64 // of the last record,
	inSecond int64 // and the records in it
	peak     Peak
}

// add counts r, which is not earlier than the record before.
func (t *count) add(r record) {
	if t.requests == 0 {
		t.from = r.at
	}
	t.requests++
	t.to = r.at
	t.asked = grown(t.asked, r.key)
	t.asked[r.key]++
	if second := r.at / 1_000_000; second != t.second {
		t.second, t.inSecond = second, 0
	}
	t.inSecond++
	if t.inSecond > t.peak.Requests {
		t.peak = Peak{At: time.Unix(t.second, 0).UTC(), Requests: t.inSecond}
	}
}

// grown returns s with room for index i.
func grown[T any](s []T, i uint32) []T {
	if n := int(i) + 1 - len(s); n > 0 {
		return append(s, make([]T, n)...)
	}
	return s
}

// result adds to r, a limit and what it denied, the numbers of the logs and the keys of keys that
// it denied most.
func (t *count) result(r Result, top int, keys iter.Seq[deniedKey]) Result {
	r.Requests, r.Allowed, r.Keys = t.requests, t.requests-r.Denied, int64(len(t.asked))
	r.Top = []TopDenied{}
	for _, d := range t.names.mostDenied(top, keys) {
		r.Top = append(r.Top, TopDenied{
			Key:      LogKey(t.names.keys[d.key]),
			Requests: t.asked[d.key],
			Denied:   d.denied,
			Share:    float64(d.denied) / float64(r.Denied),
		})
	}
	return r
}
