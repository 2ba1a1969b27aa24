package observe

import (
	"cmp"
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/headgate/headgate"
)

// MaxDeniedKey is the number of bytes that a [TopDenied] keeps of a key.
const MaxDeniedKey = 128

const (
	defaultEntries = 1000
	maxEntries     = 1 << 24
)

// TopDenied finds the keys that are denied most, in bounded memory. Its method Decided is for an
// [Observer].
//
// It counts requests that a limit denied, not their cost; peeks, refunds, errors and what was
// rolled back do not count. A key is counted separately under each limit (see [headgate.Limit.ID]).
//
// A fixed number n of entries is kept by the algorithm Space-Saving (Metwally, Agrawal, El
// Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005): a new
// key takes the place and the count of the key denied least. So of N denials,
//
//   - a key was denied at most Denied and at least AtLeast times, which differ by at most N/n;
//   - every key that was denied more than N/n times has an entry;
//   - the Denied of all entries add up to N.
//
// It takes about 190 bytes for each entry, all of them when it is made. It is safe for use by
// many goroutines. Make one with [NewTopDenied].
type TopDenied struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries []deniedEntry
	ranks   []deniedRank // the entries in ascending order of their counts
	heads   []int32      // of the lists of entries of one hash, each 1 more than the index; 0: none
}

// deniedEntry is a key and all that is known of it except its count. An entry that is not in use
// has the count 0, so it is taken first.
type deniedEntry struct {
	limit  headgate.Limit // the zero Limit while the entry is not in use
	hash   uint64         // of the whole key and the limit's ID
	over   int64          // the count that it took over
	length int            // of the whole key
	rank   int32          // its index in ranks
	next   int32          // in the list of its hash
	key    [MaxDeniedKey]byte
}

type deniedRank struct {
	count int64
	entry int32
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
	entries = min(entries, maxEntries)
	t := &TopDenied{
		seed:    maphash.MakeSeed(),
		entries: make([]deniedEntry, entries),
		ranks:   make([]deniedRank, entries),
		heads:   make([]int32, 1<<bits.Len(uint(entries-1))),
	}
	t.Reset()
	return t
}

// Decided counts e if it is a denial. It is for [Observer].
func (t *TopDenied) Decided(_ context.Context, e Event) {
	if e.Outcome != Denied || e.Request.Cost <= 0 || e.Request.Limit.ID() == "" {
		return
	}
	hash := t.hash(e.Request.Key, e.Request.Limit)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(hash, e.Request.Key, e.Request.Limit)
	if i < 0 {
		i = t.enter(hash, e.Request.Key)
	}
	t.entries[i].limit = e.Request.Limit
	t.count(i)
}

// Top returns all entries, those denied most first; of equals, the one with the largest AtLeast
// first.
func (t *TopDenied) Top() []DeniedKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := sort.Search(len(t.ranks), func(i int) bool { return t.ranks[i].count > 0 })
	top := make([]DeniedKey, 0, len(t.ranks)-first)
	for _, rank := range t.ranks[first:] {
		e := &t.entries[rank.entry]
		top = append(top, DeniedKey{
			Key:     string(e.kept()),
			Limit:   e.limit,
			Denied:  rank.count,
			AtLeast: rank.count - e.over,
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
	clear(t.entries)
	clear(t.heads)
	for i := range t.ranks {
		t.entries[i].rank = int32(i)
		t.ranks[i] = deniedRank{entry: int32(i)}
	}
}

// kept is the part of the key that e keeps.
func (e *deniedEntry) kept() []byte { return e.key[:min(e.length, MaxDeniedKey)] }

func (e *deniedEntry) is(hash uint64, key string, l headgate.Limit) bool {
	return e.hash == hash && e.length == len(key) &&
		string(e.kept()) == key[:min(len(key), MaxDeniedKey)] &&
		(e.limit == l || e.limit.ID() == l.ID())
}

// hash is keyed by a secret seed, so that clients cannot make long keys that count as one, or
// short keys that share a list.
func (t *TopDenied) hash(key string, l headgate.Limit) uint64 {
	return maphash.String(t.seed, key) ^ bits.RotateLeft64(maphash.String(t.seed, l.ID()), 1)
}

func (t *TopDenied) list(hash uint64) *int32 { return &t.heads[hash&uint64(len(t.heads)-1)] }

// find returns the index of the entry of key under l, or -1.
func (t *TopDenied) find(hash uint64, key string, l headgate.Limit) int32 {
	i := *t.list(hash) - 1
	for i >= 0 && !t.entries[i].is(hash, key, l) {
		i = t.entries[i].next - 1
	}
	return i
}

// enter gives key the entry of the key denied least, with its count.
func (t *TopDenied) enter(hash uint64, key string) int32 {
	i := t.ranks[0].entry
	e := &t.entries[i]
	if e.limit != (headgate.Limit{}) {
		t.unlist(i)
	}
	e.hash, e.length, e.over = hash, len(key), t.ranks[0].count
	copy(e.key[:], key)
	head := t.list(hash)
	e.next, *head = *head, i+1
	return i
}

// unlist takes entry i out of the list of its hash.
func (t *TopDenied) unlist(i int32) {
	link := t.list(t.entries[i].hash)
	for *link != i+1 {
		link = &t.entries[*link-1].next
	}
	*link = t.entries[i].next
}

// count adds one to the count of entry i. For that, it changes places with the last entry of the
// same count, so that ranks stays in order.
func (t *TopDenied) count(i int32) {
	rank := int(t.entries[i].rank)
	count := t.ranks[rank].count
	last := rank + sort.Search(len(t.ranks)-rank-1, func(n int) bool {
		return t.ranks[rank+1+n].count > count
	})
	t.swap(rank, last)
	t.ranks[last].count++
}

func (t *TopDenied) swap(a, b int) {
	t.ranks[a], t.ranks[b] = t.ranks[b], t.ranks[a]
	t.entries[t.ranks[a].entry].rank = int32(a)
	t.entries[t.ranks[b].entry].rank = int32(b)
}
