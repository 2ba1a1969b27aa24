package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// detailing collects a Detail while a tally decides.
type detailing struct {
	denied   []bool          // by limit, of the request that is decided
	retry    []time.Duration // by limit, if it is denied
	bars     *bars           // requests, then denied by limit
	lockouts []lockouts
	facets   *facets
	history  *history
}

func newDetailing(limits int) *detailing {
	return &detailing{
		denied: make([]bool, limits), retry: make([]time.Duration, limits),
		bars: newBars(1 + limits), lockouts: make([]lockouts, limits),
		facets: newFacets(), history: newHistory(),
	}
}

// add records a decided request, which is not earlier than the one before.
func (d *detailing) add(r record) {
	d.bars.begin(r.at / 1e6)
	d.bars.add(0)
	for i, denied := range d.denied {
		if denied {
			d.bars.add(1 + i)
			d.lockouts[i].deny(r.key, r.at, d.retry[i])
		} else {
			d.lockouts[i].allow(r.key)
		}
	}
	d.facets.add(r.facets, d.denied)
	d.history.add(r)
}

// detailed returns the Detail of what was added.
func (t *tally) detailed(ctx context.Context) (*Detail, error) {
	d := t.detail
	d.bars.finish()
	detail := &Detail{Timeline: d.bars.timeline()}
	f := newFollower(ctx, t.names, d.bars)
	totals := make([]int64, len(t.trials))
	for i, trial := range t.trials {
		denied := t.names.mostDenied(DetailKeys, trial.deniedKeys)
		keys := []DeniedKey{}
		for _, k := range denied {
			keys = append(keys, t.deniedKey(k, &d.lockouts[i]))
		}
		detail.Keys = append(detail.Keys, keys)
		detail.DeniedKeysTotal = append(detail.DeniedKeysTotal, trial.keys)
		f.follow(trial.limit, denied[:min(len(denied), DetailFollows)])
		totals[i] = trial.total
	}
	detail.Paths, detail.Methods = d.facets.paths.list(totals), d.facets.methods.list(totals)
	detail.Statuses = d.facets.statuses.list(totals)
	if len(f.of) > 0 {
		if err := d.history.walk(ctx, f); err != nil {
			return nil, err
		}
	}
	detail.KeyTimelines = f.lines
	return detail, f.err
}

// deniedKey describes a key that was denied.
func (t *tally) deniedKey(k deniedKey, times *lockouts) DeniedKey {
	d := DeniedKey{
		Key: LogKey(t.names.keys[k.key]), Requests: t.asked[k.key], Denied: k.denied,
	}
	times.describe(&d, k.key)
	return d
}

// follower decides the requests of some keys once more, and counts them over time. It is a walker.
type follower struct {
	ctx   context.Context //nolint:containedctx // a walker's methods have none
	names *keyIDs
	bars  *bars
	of    map[uint32][]followed // by key
	lines [][]KeyTimeline       // by limit
	key   uint32
	err   error
}

// followed is a limit that follows a key.
type followed struct {
	limit headgate.Limit
	store headgate.Store
	line  *KeyTimeline
}

func newFollower(ctx context.Context, names *keyIDs, bars *bars) *follower {
	return &follower{
		ctx: ctx, names: names, bars: bars, of: map[uint32][]followed{}, lines: [][]KeyTimeline{},
	}
}

// follow adds a limit with the keys that it follows.
func (f *follower) follow(l headgate.Limit, keys []deniedKey) {
	lines := make([]KeyTimeline, len(keys))
	store := headgate.NewMemorySize(roomy)
	for i, k := range keys {
		lines[i] = KeyTimeline{LogKey(f.names.keys[k.key]), []BarCount{}, []BarCount{}}
		f.of[k.key] = append(f.of[k.key], followed{l, store, &lines[i]})
	}
	f.lines = append(f.lines, lines)
}

// request decides a request.
func (f *follower) request(r record) {
	bar := f.bars.bar(r.at / 1e6)
	for _, k := range f.of[r.key] {
		k.line.Requests = addBar(k.line.Requests, bar, 1)
		d, err := k.store.Take(f.ctx, headgate.Request{
			Key: f.names.keys[r.key], Limit: k.limit, Cost: 1, At: time.UnixMicro(r.at),
		})
		if err != nil {
			f.err = fmt.Errorf("limit %s: %w", k.limit, err)
		} else if !d.Allowed() {
			k.line.Denied = addBar(k.line.Denied, bar, 1)
		}
	}
}

func (f *follower) begin(key uint32) bool {
	f.key = key
	return f.of[key] != nil
}

func (f *follower) see(vs []visits) {
	for _, v := range vs {
		for range v.n {
			f.request(record{at: v.at, key: f.key})
		}
	}
}

func (*follower) end() {}
