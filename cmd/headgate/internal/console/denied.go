package console

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// The bounds of what is known about denied keys.
const (
	generation  = 5 * time.Minute // keys are forgotten after one to two of these
	maxTables   = 200             // rules
	maxEntries  = 128             // keys of a rule, in a generation
	maxKeyBytes = 256             // of longer keys, the beginning is kept
	rateTime    = 5 * time.Second // over which the rate of a key is smoothed
)

// deniedKeys finds the keys that each rule denies most. Only denials cost something: a lock and a
// lookup.
type deniedKeys struct {
	seconds atomic.Int64 // the time of the last tick, since 1970
	changed time.Time    // when the generation did

	mu     sync.Mutex
	tables atomic.Pointer[map[ruleID]*deniedTable] // replaced as a whole
}

// ruleID names a rule without joining texts.
type ruleID struct{ domain, name string }

// String returns the name under which a rule is shown. No rule of the file has a slash.
func (id ruleID) String() string {
	if id.domain == "" {
		return id.name
	}
	return id.domain + "/" + id.name
}

// deniedTable holds the denied keys of a rule, of this generation and the one before.
type deniedTable struct {
	mu          sync.Mutex
	now, before *topKeys
}

// add counts n denials of key.
func (d *deniedKeys) add(rule ruleID, key string, n uint64, shadow bool) {
	var table *deniedTable
	if tables := d.tables.Load(); tables != nil {
		table = (*tables)[rule]
	}
	if table == nil {
		if table = d.addTable(rule); table == nil {
			return
		}
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	table.now.add(key, n, shadow, d.seconds.Load())
}

// addTable makes the table of a rule, or returns nil if there are too many.
func (d *deniedKeys) addTable(rule ruleID) *deniedTable {
	d.mu.Lock()
	defer d.mu.Unlock()
	tables := map[ruleID]*deniedTable{}
	if old := d.tables.Load(); old != nil {
		if table := (*old)[rule]; table != nil || len(*old) >= maxTables {
			return table
		}
		maps.Copy(tables, *old)
	}
	rule = ruleID{strings.Clone(rule.domain), strings.Clone(rule.name)}
	table := &deniedTable{now: newTopKeys(), before: newTopKeys()}
	tables[rule] = table
	d.tables.Store(&tables)
	return table
}

// tick measures rates, and begins a new generation if it is time.
func (d *deniedKeys) tick(now time.Time, since time.Duration) {
	d.seconds.Store(now.Unix())
	renew := now.Truncate(generation).After(d.changed)
	if renew {
		d.changed = now.Truncate(generation)
		d.dropIdle()
	}
	tables := d.tables.Load()
	if tables == nil {
		return
	}
	for _, table := range *tables {
		table.mu.Lock()
		if renew {
			table.now, table.before = newTopKeys(), table.now
		}
		table.now.measure(since)
		table.before.measure(since)
		table.mu.Unlock()
	}
}

// dropIdle forgets rules that have denied nothing for a generation.
func (d *deniedKeys) dropIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.tables.Load()
	if old == nil {
		return
	}
	tables := map[ruleID]*deniedTable{}
	for id, table := range *old {
		table.mu.Lock()
		if len(table.now.entries) > 0 {
			tables[id] = table
		}
		table.mu.Unlock()
	}
	d.tables.Store(&tables)
}

// deniedKey is a key that was denied, as it is shown.
type deniedKey struct {
	Key    string  `json:"key"`
	Denied uint64  `json:"denied"` // at least
	Shadow uint64  `json:"shadow_denied"`
	Rate   float64 `json:"per_s"`
	Last   int64   `json:"last"` // milliseconds since 1970
}

// top returns the n keys that each rule denied most.
func (d *deniedKeys) top(n int) map[string][]deniedKey {
	list := map[string][]deniedKey{}
	tables := d.tables.Load()
	if tables == nil {
		return list
	}
	for id, table := range *tables {
		table.mu.Lock()
		keys := table.before.keys(table.now.keys(nil))
		table.mu.Unlock()
		if keys = mostDenied(keys, n); len(keys) > 0 {
			list[id.String()] = keys
		}
	}
	return list
}

// mostDenied joins what is of the same key, and returns the n keys denied most.
func mostDenied(keys []deniedKey, n int) []deniedKey {
	slices.SortFunc(keys, func(a, b deniedKey) int { return cmp.Compare(a.Key, b.Key) })
	joined := keys[:0]
	for _, k := range keys {
		if last := len(joined) - 1; last >= 0 && joined[last].Key == k.Key {
			j := &joined[last]
			j.Denied, j.Shadow, j.Rate = j.Denied+k.Denied, j.Shadow+k.Shadow, j.Rate+k.Rate
			j.Last = max(j.Last, k.Last)
			continue
		}
		joined = append(joined, k)
	}
	slices.SortStableFunc(joined, func(a, b deniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(b.Shadow, a.Shadow))
	})
	return joined[:min(len(joined), n)]
}

// topKeys finds the keys denied most by the algorithm Space-Saving, as observe.TopDenied does. It
// also counts denials of rules in shadow, and orders its heap only when a key has to go, so that
// the denial of a known key costs one lookup.
type topKeys struct {
	entries map[string]*entry
	heap    entryHeap // may be out of date below what entries say
}

type entry struct {
	key            string
	denied, shadow uint64
	over           uint64 // what the entry counted for the keys before this one
	weight         uint64 // of the heap: denied, shadow and over when it was put there
	measured       uint64
	rate           float64
	last           int64
}

func (e *entry) count() uint64 { return e.denied + e.shadow + e.over }

func newTopKeys() *topKeys { return &topKeys{entries: map[string]*entry{}} }

func (t *topKeys) add(key string, n uint64, shadow bool, now int64) {
	if len(key) > maxKeyBytes {
		end := maxKeyBytes
		for end > 0 && !utf8.RuneStart(key[end]) {
			end--
		}
		key = key[:end] + "…"
	}
	e := t.entries[key]
	if e == nil {
		e = t.enter(strings.Clone(key))
	}
	e.last = now
	if shadow {
		e.shadow += n
	} else {
		e.denied += n
	}
}

// enter makes an entry for key. If there are as many as may be, it is that of the key denied least.
func (t *topKeys) enter(key string) *entry {
	e := &entry{key: key}
	t.entries[key] = e
	if len(t.heap) < maxEntries {
		heap.Push(&t.heap, e)
		return e
	}
	for least := t.heap[0]; least.weight != least.count(); least = t.heap[0] {
		least.weight = least.count()
		heap.Fix(&t.heap, 0)
	}
	delete(t.entries, t.heap[0].key)
	e.over = t.heap[0].weight
	e.weight, e.measured = e.over, e.over
	t.heap[0] = e
	return e
}

// measure updates the rates after some time.
func (t *topKeys) measure(since time.Duration) {
	if since <= 0 {
		return
	}
	share := 1 - math.Exp(-since.Seconds()/rateTime.Seconds())
	for _, e := range t.heap {
		now := e.count()
		e.rate += share * (float64(now-e.measured)/since.Seconds() - e.rate)
		e.measured = now
	}
}

// keys appends all keys to list.
func (t *topKeys) keys(list []deniedKey) []deniedKey {
	for _, e := range t.heap {
		list = append(list, deniedKey{e.key, e.denied, e.shadow, e.rate, e.last * 1000})
	}
	return list
}

// entryHeap has the entry with the smallest weight first.
type entryHeap []*entry

func (h *entryHeap) Len() int           { return len(*h) }
func (h *entryHeap) Less(i, j int) bool { return (*h)[i].weight < (*h)[j].weight }
func (h *entryHeap) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface.
func (h *entryHeap) Push(x any) { *h = append(*h, x.(*entry)) } //nolint:forcetypeassert // of this file

// Pop implements heap.Interface.
func (h *entryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
