package lease

import (
	"hash/maphash"
	"sync"

	"github.com/headgate/headgate"
)

// hotTakes is how many grants within a span make a key hot.
const hotTakes = 16

// ways is the number of keys in a row.
const ways = 4

// hotKeys counts what keys were granted lately, in a table of fixed size. A full row keeps the keys
// that were granted something last.
type hotKeys struct {
	seed maphash.Seed
	span int64 // microseconds
	rows []row
}

type row struct {
	mu       sync.Mutex
	counters [ways]counter
}

// counter is what one key was granted under one limit.
type counter struct {
	hash  uint64
	since int64 // when the current span began
	now   tally // granted in the current span
	last  tally // granted in the span before
	held  *held // nil unless the key was hot
}

type tally struct{ tokens, takes int64 }

func newHotKeys(keys int, span int64) hotKeys {
	rows := make([]row, (keys+ways-1)/ways)
	return hotKeys{seed: maphash.MakeSeed(), span: span, rows: rows}
}

type identity struct {
	key   string
	limit headgate.Limit
}

// row returns where a key is counted under a limit.
func (t *hotKeys) row(key string, l headgate.Limit) (*row, uint64) {
	hash := maphash.Comparable(t.seed, identity{key, l})
	return &t.rows[hash%uint64(len(t.rows))], hash
}

func (r *row) find(hash uint64) *counter {
	for i := range r.counters {
		if c := &r.counters[i]; c.hash == hash {
			return c
		}
	}
	return nil
}

// counter returns the counter of hash, in a new place if it has none. It returns nil if all keys
// of the row are hot.
func (r *row) counter(hash uint64, now, span int64) *counter {
	if c := r.find(hash); c != nil {
		return c
	}
	var victim *counter
	for i := range r.counters {
		c := &r.counters[i]
		if c.hot() && now-c.since < 2*span {
			continue
		}
		if victim == nil || c.since < victim.since {
			victim = c
		}
	}
	if victim != nil {
		*victim = counter{hash: hash, since: now}
	}
	return victim
}

// drop drops the tokens that are held for hash, and those of a prefetch under way.
func (r *row) drop(hash uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(hash); c != nil {
		c.held = nil
	}
}

func (c *counter) count(cost, now, span int64) {
	if past := now - c.since; past >= span {
		c.last = tally{}
		if past < 2*span {
			c.last = c.now
		}
		c.since, c.now = now, tally{}
	}
	c.now.takes++
	c.now.tokens += cost
}

// recent returns what was granted in the last span, or so far in this one if that is more.
func (c *counter) recent() tally {
	if c.last.takes > c.now.takes {
		return c.last
	}
	return c.now
}

func (c *counter) hot() bool { return c.recent().takes >= hotTakes }
