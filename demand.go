package headgate

import (
	"hash/maphash"
	"sync"
)

// leastTakes is how many grants within a span make a key hot. Fewer are not worth the calls
// to take tokens ahead and to give them back.
const leastTakes = 16

// demands counts what keys were granted lately, in a table whose size is fixed: of keys that
// would share a row too small for them, those that were granted something last are
// counted.
type demands struct {
	seed maphash.Seed
	span int64 // nanoseconds
	rows []demandRow
}

type demandRow struct {
	mu   sync.Mutex
	keys [demandWays]demand
}

const demandWays = 4

// lowOf is the part of a loan with which the next one is asked for: two round trips of the 20 that a Term should
// have at least.
const lowOf = 8

// demand is what one key was granted under one limit.
type demand struct {
	hash   uint64
	since  int64 // when the span began, in nanoseconds since the table was made
	tokens int64 // granted in the span
	takes  int64 // in so many parts
	before struct{ tokens, takes int64 }

	loan *loan // tokens taken ahead, or about to be
	next *loan // the same, to go on with; only if there is a loan
	rest int64 // none are taken ahead before this
}

func newDemands(keys int, span int64) demands {
	rows := 1
	for rows*demandWays < keys {
		rows *= 2
	}
	return demands{seed: maphash.MakeSeed(), span: span, rows: make([]demandRow, rows)}
}

// row is where a key is counted under a limit.
func (t *demands) row(key string, l Limit) (r *demandRow, hash uint64) {
	hash = maphash.String(t.seed, key) ^ l.rule.identity
	return &t.rows[hash&uint64(len(t.rows)-1)], hash
}

// find is the demand of that hash, or nil.
func (r *demandRow) find(hash uint64) *demand {
	for i := range r.keys {
		if r.keys[i].hash == hash {
			return &r.keys[i]
		}
	}
	return nil
}

// of is the demand that has n, or nil.
func (r *demandRow) of(n *loan) *demand {
	for i := range r.keys {
		if d := &r.keys[i]; d.loan == n || d.next == n {
			return d
		}
	}
	return nil
}

// loans are those of the row that have something left.
func (r *demandRow) loans() (all []*loan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.keys {
		for _, n := range []*loan{r.keys[i].loan, r.keys[i].next} {
			if n != nil && !n.asked() {
				all = append(all, n)
			}
		}
	}
	return all
}

// forget ends the loans of that hash.
func (r *demandRow) forget(hash uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.find(hash); d != nil {
		d.loan.end()
		d.next.end()
		d.loan, d.next = nil, nil
	}
}

// begin is find, and makes room for a hash that is not there. It is nil if all keys of the
// row are hot.
func (r *demandRow) begin(hash uint64, now, span int64) *demand {
	if d := r.find(hash); d != nil {
		return d
	}
	var oldest *demand
	for i := range r.keys {
		d := &r.keys[i]
		if d.loan != nil || d.hot() && now-d.since < 2*span {
			continue
		}
		if oldest == nil || d.since < oldest.since {
			oldest = d
		}
	}
	if oldest != nil {
		*oldest = demand{hash: hash, since: now}
	}
	return oldest
}

// count counts a grant of cost tokens.
func (d *demand) count(cost, now, span int64) {
	if past := now - d.since; past >= span {
		d.before.tokens, d.before.takes = 0, 0
		if past < 2*span {
			d.before.tokens, d.before.takes = d.tokens, d.takes
		}
		d.since, d.tokens, d.takes = now, 0, 0
	}
	d.takes++
	d.tokens = min(d.tokens+cost, maxExact)
}

// remove takes n, which is over, off.
func (d *demand) remove(n *loan) {
	if d.loan == n {
		d.loan = d.next
	}
	d.next = nil
}

// low says whether little is left of the loan, in tokens or in time, and there is no other.
func (d *demand) low(now int64) bool {
	n := d.loan
	return d.next == nil && !n.asked() && (n.left < n.size/lowOf || n.until-now < int64(usable(n.term))/lowOf)
}

func (d *demand) hot() bool { return max(d.takes, d.before.takes) >= leastTakes }

// lately is what was granted in the last span, or so far in this one.
func (d *demand) lately() (tokens, takes int64) {
	if d.before.takes > d.takes {
		return d.before.tokens, d.before.takes
	}
	return d.tokens, d.takes
}
