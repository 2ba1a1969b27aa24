package observe

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate"
)

// MaxDeniedKey is how many bytes of a key a [TopDenied] keeps at most.
const MaxDeniedKey = 256

const (
	defaultEntries = 1000
	maxEntries     = 1 << 24
)

// TopDenied finds the keys that are denied most, in bounded memory. Its method Decided is for an
// [Observer].
//
// It counts requests that a limit denied, not their cost; peeks, refunds, errors and requests that
// were rolled back do not count. A key is counted separately under each limit (see
// [headgate.Limit.ID]).
//
// A fixed number n of entries is kept by the algorithm Space-Saving (Metwally, Agrawal, El
// Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005): a new
// key takes the place and the count of the key denied least. So after N denials,
//
//   - the true number of denials of a key is from AtLeast to Denied, which differ by at most N/n;
//   - every key that was denied more than N/n times has an entry;
//   - the Denied of all entries add up to N.
//
// It takes at most about 550 bytes for each entry, key included. It is safe for use by many
// goroutines. Make one with [NewTopDenied].
type TopDenied struct {
	seed maphash.Seed
	size int

	mu      sync.Mutex
	entries map[deniedID]*deniedEntry
	counts  []*deniedEntry // a heap: the first has the smallest count
}

type deniedID struct {
	key   string // its first MaxDeniedKey bytes
	hash  uint64 // of the whole key, if that is longer
	limit string // the limit's ID
}

type deniedEntry struct {
	id    deniedID
	limit headgate.Limit
	count int64
	over  int64 // the count that it took over
	index int   // in the heap
}

// DeniedKey is a key that was denied.
type DeniedKey struct {
	Key     string         // its first [MaxDeniedKey] bytes; longer keys are counted separately
	Limit   headgate.Limit // as it was when it denied last
	Denied  int64          // how often, at most
	AtLeast int64          // how often, at least
}

// NewTopDenied makes a TopDenied with the given number of entries, at most 2^24. 0 or less
// means 1,000, which is enough to find the top ten.
func NewTopDenied(entries int) *TopDenied {
	if entries <= 0 {
		entries = defaultEntries
	}
	t := &TopDenied{seed: maphash.MakeSeed(), size: min(entries, maxEntries)}
	t.Reset()
	return t
}

// Decided counts e if it is a denial. It is for [Observer].
func (t *TopDenied) Decided(_ context.Context, e Event) {
	if e.Outcome != Denied || e.Request.Cost <= 0 || e.Request.Limit.ID() == "" {
		return
	}
	t.Add(e.Request.Key, e.Request.Limit, 1)
}

// Add counts n denials of key by l, for callers without an [Event]. The zero Limit is valid here.
func (t *TopDenied) Add(key string, l headgate.Limit, n int64) {
	id := deniedID{key: key, limit: l.ID()}
	// the seed is secret: clients cannot make keys that count as one
	if len(id.key) > MaxDeniedKey {
		id.key, id.hash = id.key[:MaxDeniedKey], maphash.String(t.seed, id.key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.entries[id]
	if d == nil {
		d = t.enter(id)
	}
	d.limit = l
	d.count += min(max(n, 0), math.MaxInt64-d.count)
	t.sink(d)
}

// enter makes an entry for id. If there are as many as there may be, id gets that of the key denied
// least, with its count.
func (t *TopDenied) enter(id deniedID) *deniedEntry {
	id.key = strings.Clone(id.key) // which may be part of something large
	var d *deniedEntry
	if len(t.counts) < t.size {
		d = &deniedEntry{index: len(t.counts)}
		t.counts = append(t.counts, d)
		for d.index > 0 { // to the front: its count is 0
			t.swap(d, t.counts[(d.index-1)/2])
		}
	} else {
		d = t.counts[0]
		delete(t.entries, d.id)
		d.over = d.count
	}
	d.id = id
	t.entries[id] = d
	return d
}

// Top returns all entries, those denied most first. If Denied is equal, the largest AtLeast comes
// first.
func (t *TopDenied) Top() []DeniedKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	top := make([]DeniedKey, 0, len(t.counts))
	for _, d := range t.counts {
		top = append(top, DeniedKey{
			Key: d.id.key, Limit: d.limit, Denied: d.count, AtLeast: d.count - d.over,
		})
	}
	slices.SortFunc(top, func(a, b DeniedKey) int {
		return cmp.Or(
			cmp.Compare(b.Denied, a.Denied),
			cmp.Compare(b.AtLeast, a.AtLeast),
			cmp.Compare(a.Key, b.Key),
		)
	})
	return top
}

// Reset forgets all denials.
func (t *TopDenied) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.counts = make(map[deniedID]*deniedEntry), nil
}

// sink moves d, whose count has grown, below smaller counts.
func (t *TopDenied) sink(d *deniedEntry) {
	for {
		child := 2*d.index + 1
		if child >= len(t.counts) {
			return
		}
		if child+1 < len(t.counts) && t.counts[child+1].count < t.counts[child].count {
			child++
		}
		if t.counts[child].count >= d.count {
			return
		}
		t.swap(d, t.counts[child])
	}
}

func (t *TopDenied) swap(a, b *deniedEntry) {
	a.index, b.index = b.index, a.index
	t.counts[a.index], t.counts[b.index] = a, b
}
