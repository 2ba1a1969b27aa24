package replay

import (
	"context"
	"fmt"
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
	limit  headgate.Limit
	store  headgate.Store
	denied []int64 // by key; shorter if those after were never denied
	total  int64
	keys   int64 // that were denied
}

// roomy is more keys than any log has: a full store would be wrong about new keys.
const roomy = 1 << 30

func newTally(limits []headgate.Limit, n *names) *tally {
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
			t.detail.denied[i] = !d.Allowed()
		}
	}
	if t.detail != nil {
		return t.detail.add(r)
	}
	return nil
}

func (l *trial) deny(key uint32) {
	l.denied = grown(l.denied, key)
	if l.denied[key] == 0 {
		l.keys++
	}
	l.denied[key]++
	l.total++
}

// deniedKeys yields the keys that were denied.
func (l *trial) deniedKeys(yield func(deniedKey) bool) {
	for key, n := range l.denied {
		if n > 0 && !yield(deniedKey{uint32(key), n}) {
			return
		}
	}
}
