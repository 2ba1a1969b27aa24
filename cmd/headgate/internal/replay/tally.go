package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// names numbers the keys in the order of their first occurrence.
type names struct {
	ids  map[string]uint32
	keys []string
}

func newNames() *names { return &names{ids: map[string]uint32{}} }

func (n *names) id(key []byte) uint32 {
	if id, ok := n.ids[string(key)]; ok {
		return id
	}
	id, name := uint32(len(n.keys)), string(key)
	n.ids[name] = id
	n.keys = append(n.keys, name)
	return id
}

// count counts the requests, by key and in all.
type count struct {
	asked    []int64 // by key
	requests int64
	from, to int64 // the first and the last record
	second   int64 // of the last record,
	inSecond int64 // and the records in it
	peak     Peak
}

// tally decides each record under all limits and counts the decisions.
type tally struct {
	count

	names  *names
	trials []*trial
	detail *detailing // nil unless it is wanted
}

// trial is one of the limits. It has its own store, so that limits with the same name do not
// share state.
type trial struct {
	limit  headgate.Limit
	store  headgate.Store
	denied []int64 // by key; shorter if those after were never denied
	total  int64
}

// roomy is more keys than any log has: a full store would be wrong about new keys.
const roomy = 1 << 30

func newTally(limits []headgate.Limit, n *names) *tally {
	t := &tally{names: n}
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
			t.detail.denied[i] = !d.Allowed()
		}
	}
	if t.detail != nil {
		return t.detail.add(r)
	}
	return nil
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

func (l *trial) deny(key uint32) {
	l.denied = grown(l.denied, key)
	l.denied[key]++
	l.total++
}

// grown returns s with room for index i.
func grown(s []int64, i uint32) []int64 {
	if n := int(i) + 1 - len(s); n > 0 {
		return append(s, make([]int64, n)...)
	}
	return s
}

// result returns the numbers of a limit and the keys that it denied most.
func (l *trial) result(t *tally, skipped int64, top int) Result {
	r := Result{
		Limit:    l.limit,
		Requests: t.requests,
		Allowed:  t.requests - l.total,
		Denied:   l.total,
		Keys:     int64(len(t.asked)),
		Skipped:  skipped,
		Top:      []TopDenied{},
	}
	ids, total := l.mostDenied(t.names, top)
	r.DeniedKeys = total
	for _, id := range ids {
		r.Top = append(r.Top, TopDenied{
			Key:      LogKey(t.names.keys[id]),
			Requests: t.asked[id],
			Denied:   l.denied[id],
			Share:    float64(l.denied[id]) / float64(l.total),
		})
	}
	return r
}

// mostDenied returns the n keys that were denied most, then by name, and how many were denied.
func (l *trial) mostDenied(names *names, n int) (ids []uint32, total int64) {
	order := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(l.denied[b], l.denied[a]),
			cmp.Compare(names.keys[a], names.keys[b]))
	}
	full := false // ids[n-1] is the last that counts
	for id, denied := range l.denied {
		if denied == 0 {
			continue
		}
		total++
		if n == 0 || full && order(uint32(id), ids[n-1]) > 0 {
			continue
		}
		ids = append(ids, uint32(id))
		if len(ids)/2 >= n { // to sort all of millions would take longer than to replay them
			slices.SortFunc(ids, order)
			ids, full = ids[:n], true
		}
	}
	slices.SortFunc(ids, order)
	return ids[:min(n, len(ids))], total
}
