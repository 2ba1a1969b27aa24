package console

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/observe"
)

// The bounds of what is known about denied keys.
const (
	generation  = 5 * time.Minute      // keys are forgotten after one to two of these
	maxTables   = 200                  // rules
	maxEntries  = 128                  // keys of a rule, in a generation
	maxKeyBytes = observe.MaxDeniedKey // of longer keys, the beginning is kept
)

// deniedKeys finds the keys that each rule denies most. It exists while the console has viewers.
type deniedKeys struct {
	since   time.Time       // when it began to count; one goroutine uses all but top
	ticked  time.Time       // when rates were measured last
	spans   []time.Duration // between the last ticks, the newest first
	renewed time.Time       // when the generation began

	mu     sync.Mutex // of tables, and of the now of each
	tables map[deniedID]*deniedTable
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

// deniedID names the denials of a rule, or what it would have denied in shadow.
type deniedID struct {
	rule   ruleID
	shadow bool
}

// deniedTable holds the denied keys of a rule, of this generation and the one before.
type deniedTable struct {
	now, before *observe.TopDenied
	keys        map[string]*deniedCount
	requests    requestSample
}

// deniedCount is how often a key was denied in each generation, as of the last tick.
type deniedCount struct {
	now, before int64
	recent      [rateTicks]int64 // in the spans
	first, last int64            // milliseconds since 1970; first: in the generations that are held
}

func newDeniedKeys(now time.Time) *deniedKeys {
	return &deniedKeys{
		since: now, ticked: now, renewed: now.Truncate(generation),
		tables: map[deniedID]*deniedTable{},
	}
}

// add counts n denials of key, and notes the request of e if that is not nil.
func (d *deniedKeys) add(rule ruleID, key string, n uint64, shadow bool, e *rules.Event) {
	top, requests := d.top(rule, shadow)
	if top == nil {
		return
	}
	top.Add(cutKey(key), headgate.Limit{}, int64(min(n, math.MaxInt64)))
	if e != nil && e.Request != nil {
		permit := !e.Banned && e.Decision.Limit == headgate.Limit{}
		requests.add(time.Now(), key, e.Request, permit)
	}
}

// top returns what counts the keys of a rule, and its requests, or nil if there are too many rules.
func (d *deniedKeys) top(rule ruleID, shadow bool) (*observe.TopDenied, *requestSample) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[deniedID{rule, shadow}]
	if t == nil {
		if len(d.tables) >= maxTables {
			return nil, nil
		}
		t = &deniedTable{now: newTop(), before: newTop()}
		rule = ruleID{strings.Clone(rule.domain), strings.Clone(rule.name)}
		d.tables[deniedID{rule, shadow}] = t
	}
	return t.now, &t.requests
}

func newTop() *observe.TopDenied { return observe.NewTopDenied(maxEntries) }

// cutKey returns the beginning of a long key, with an ellipsis.
func cutKey(key string) string {
	const ellipsis = "…"
	if len(key) <= maxKeyBytes {
		return key
	}
	end := maxKeyBytes - len(ellipsis)
	for end > 0 && !utf8.RuneStart(key[end]) {
		end--
	}
	return key[:end] + ellipsis
}

// all returns the tables at this moment.
func (d *deniedKeys) all() map[deniedID]*deniedTable {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.tables)
}

// tick measures rates, and begins a new generation if it is time.
func (d *deniedKeys) tick(now time.Time) {
	since := now.Sub(d.ticked)
	if since <= 0 {
		return
	}
	d.ticked = now
	d.spans = append([]time.Duration{since}, d.spans...)[:min(rateTicks, len(d.spans)+1)]
	for _, t := range d.all() { // without the lock, for which decisions wait
		t.measure(now, since)
	}
	if now.Truncate(generation).After(d.renewed) {
		d.renewed = now.Truncate(generation)
		d.renew()
	}
}

// renew begins a new generation, and forgets the rules that have denied nothing in the last one.
func (d *deniedKeys) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, t := range d.tables {
		denied := int64(0)
		for _, k := range t.keys {
			denied += k.now
			k.now, k.before = 0, k.now
		}
		if t.now, t.before = newTop(), t.now; denied == 0 {
			delete(d.tables, id)
		}
	}
}

// measure updates the counts and rates of t after some time.
func (t *deniedTable) measure(now time.Time, since time.Duration) {
	old := t.keys
	t.keys = make(map[string]*deniedCount, len(old))
	for _, k := range t.before.Top() {
		t.count(k.Key).before = k.AtLeast
	}
	for _, k := range t.now.Top() {
		t.count(k.Key).now = k.AtLeast
	}
	for key, c := range t.keys {
		more := c.now
		if o := old[key]; o != nil {
			copy(c.recent[1:], o.recent[:])
			c.first, c.last = o.first, o.last
			if more >= o.now { // else the key has lost its entry, and has a new one
				more -= o.now
			}
		}
		if c.recent[0] = more; more > 0 {
			c.last = now.UnixMilli()
			c.first = cmp.Or(c.first, now.Add(-since).UnixMilli())
		}
	}
}

// count returns the count of key, which it makes if there is none.
func (t *deniedTable) count(key string) *deniedCount {
	c := t.keys[key]
	if c == nil {
		c = new(deniedCount)
		t.keys[key] = c
	}
	return c
}

// deniedKey is a key that was denied, as it is shown.
type deniedKey struct {
	Key    string  `json:"key"`
	Denied uint64  `json:"denied"` // at least
	Shadow uint64  `json:"shadow_denied"`
	Rate   float64 `json:"per_s"`
	First  int64   `json:"first"` // milliseconds since 1970; of those in Denied and Shadow
	Last   int64   `json:"last"`

	Foreign bool          `json:"foreign,omitempty"` // no key that its rule makes: of a program
	Seen    *requestsSeen `json:"seen,omitempty"`
}

// most returns the keys that each rule denied most, n of all rules, as of the last tick.
func (d *deniedKeys) most(n int) map[string][]deniedKey {
	list := map[string][]deniedKey{}
	if d == nil {
		return list
	}
	seconds := 0.0
	for _, span := range d.spans {
		seconds += span.Seconds()
	}
	for id, t := range d.all() {
		name := id.rule.String()
		for key, c := range t.keys {
			k := deniedKey{Key: key, First: c.first, Last: c.last}
			for _, n := range c.recent {
				k.Rate += float64(n) / max(seconds, 1e-9)
			}
			if id.shadow {
				k.Shadow = uint64(c.now + c.before)
			} else {
				k.Denied = uint64(c.now + c.before)
			}
			list[name] = append(list[name], k)
		}
	}
	each := max(1, min(snapshotRuleKeys, n/max(1, len(list))))
	for name, keys := range list {
		list[name] = slices.Clip(mostDenied(keys, each))
	}
	for id, t := range d.all() {
		if !id.shadow {
			t.requests.seen(list[id.rule.String()])
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
			j.First, j.Last = min(j.First, k.First), max(j.Last, k.Last)
			j.Seen = j.Seen.join(k.Seen)
			continue
		}
		joined = append(joined, k)
	}
	slices.SortStableFunc(joined, func(a, b deniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(b.Shadow, a.Shadow))
	})
	return joined[:min(len(joined), n)]
}
