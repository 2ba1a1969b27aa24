package replay

import "time"

// detailing collects a Detail while a tally decides.
type detailing struct {
	denied   []bool          // by limit, of the request that is decided
	retry    []time.Duration // by limit, if it is denied
	bars     *bars           // requests, then denied by limit
	lockouts []lockouts
	facets   *facets
}

func newDetailing(limits int) *detailing {
	return &detailing{
		denied: make([]bool, limits), retry: make([]time.Duration, limits),
		bars: newBars(1 + limits), lockouts: make([]lockouts, limits),
		facets: newFacets(),
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
}

// detailed returns the Detail of what was added.
func (t *tally) detailed() *Detail {
	d := t.detail
	d.bars.finish()
	detail := &Detail{Timeline: d.bars.timeline()}
	totals := make([]int64, len(t.trials))
	for i, trial := range t.trials {
		keys := []DeniedKey{}
		for _, k := range t.names.mostDenied(DetailKeys, trial.deniedKeys) {
			keys = append(keys, t.deniedKey(k, &d.lockouts[i]))
		}
		detail.Keys = append(detail.Keys, keys)
		detail.DeniedKeysTotal = append(detail.DeniedKeysTotal, trial.keys)
		totals[i] = trial.total
	}
	detail.Paths, detail.Methods = d.facets.paths.list(totals), d.facets.methods.list(totals)
	detail.Statuses = d.facets.statuses.list(totals)
	return detail
}

// deniedKey describes a key that was denied.
func (t *tally) deniedKey(k deniedKey, times *lockouts) DeniedKey {
	d := DeniedKey{
		Key: LogKey(t.names.keys[k.key]), Requests: t.asked[k.key], Denied: k.denied,
	}
	times.describe(&d, k.key)
	return d
}
