package headgate

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
)

// DefaultDenied is the number of entries of NewTopDenied(0).
const DefaultDenied = 1000

// MaxDeniedKey is how many bytes of a key a [TopDenied] keeps.
const MaxDeniedKey = 128

// TopDenied finds the keys that are denied most, in bounded memory whatever keys come. It is an
// [Observer]'s Decided:
//
//	top := headgate.NewTopDenied(0)
//	store, err := headgate.Observe(store, headgate.Observer{Decided: top.Decided})
//
// It counts the requests for tokens that a limit denied, not their cost; what was spared, looked at or failed is
// no denial, nor is a take-back that came too late. A key counts by itself under each limit (as told apart by [Limit.ID]).
//
// It keeps a fixed number of entries by the algorithm Space-Saving (Metwally, Agrawal, El Abbadi: Efficient
// Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005): who is not among them
// takes the place and the count of the one denied least. So of N denials since the start or the last Reset,
// with n entries,
//
//   - no key was denied more often than its entry says, nor less often than that without Over;
//   - Over is at most N/n;
//   - every key that was denied more than N/n times has an entry;
//   - the entries add up to N.
//
// It takes about 190 bytes an entry from the start and allocates nothing after. It is safe for use by many goroutines.
// Make one with [NewTopDenied].
type TopDenied struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries []deniedEntry
	ranks   []deniedRank // the entries in ascending order of their counts
	heads   []int32      // of the lists of entries of one hash, each 1 more than the index; 0: none
}

// deniedEntry is a key and what is known of it but for its count. An entry that nobody has taken
// yet is like that of a key without denials: its count is 0, so it is taken first.
type deniedEntry struct {
	limit  Limit  // the zero Limit until it is taken
	hash   uint64 // of the whole key and the limit's ID
	over   int64
	length int   // of the whole key
	rank   int32 // its place in ranks
	next   int32 // in the list of its hash
	key    [MaxDeniedKey]byte
}

type deniedRank struct {
	count int64
	entry int32
}

// DeniedKey is a key that was denied.
type DeniedKey struct {
	Key    string // its first [MaxDeniedKey] bytes
	Cut    bool   // Key is not the whole key. Longer ones are told apart by a hash of all their bytes
	Limit  Limit  // as it was when it denied last
	Denied int64  // how often, at most
	Over   int64  // by how much Denied may be too large
}

// NewTopDenied makes room for so many entries, at most 2^24; 0 or less means [DefaultDenied]. To find the top ten
// of a busy day, a hundred times that is plenty.
func NewTopDenied(entries int) *TopDenied {
	if entries <= 0 {
		entries = DefaultDenied
	}
	entries = min(entries, 1<<24)
	lists := 1
	for lists < entries {
		lists *= 2
	}
	t := &TopDenied{
		seed:    maphash.MakeSeed(),
		entries: make([]deniedEntry, entries),
		ranks:   make([]deniedRank, entries),
		heads:   make([]int32, lists),
	}
	t.Reset()
	return t
}

// Decided counts o if it was denied. It is for [Observer].
func (t *TopDenied) Decided(_ context.Context, o Observed) {
	if o.Outcome != OutcomeDenied || o.Request.Cost <= 0 || o.Request.Limit.rule == nil {
		return
	}
	hash := t.hash(o.Request.Key, o.Request.Limit)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(hash, o.Request.Key, o.Request.Limit)
	if e < 0 {
		e = t.enter(hash, o.Request.Key)
	}
	t.entries[e].limit = o.Request.Limit
	t.count(e)
}

// Top is all entries, those denied most first. Of equals, the one that is known the better comes first.
func (t *TopDenied) Top() []DeniedKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := sort.Search(len(t.ranks), func(i int) bool { return t.ranks[i].count > 0 })
	top := make([]DeniedKey, 0, len(t.ranks)-first)
	for _, rank := range t.ranks[first:] {
		e := &t.entries[rank.entry]
		kept := min(e.length, MaxDeniedKey)
		top = append(top, DeniedKey{Key: string(e.key[:kept]), Cut: kept < e.length, Limit: e.limit, Denied: rank.count, Over: e.over})
	}
	slices.SortFunc(top, func(a, b DeniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Over, b.Over), cmp.Compare(a.Key, b.Key))
	})
	return top
}

// Reset forgets all denials: what is counted next is counted since now.
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

// hash is keyed by a seed that nobody outside can know, so that nobody can make long
// keys that count as one, or short ones that lie in one list.
func (t *TopDenied) hash(key string, l Limit) uint64 {
	return mixed(maphash.String(t.seed, key) ^ l.rule.identity)
}

func (t *TopDenied) list(hash uint64) *int32 { return &t.heads[hash&uint64(len(t.heads)-1)] }

// find is the index of the entry of key under l, or -1.
func (t *TopDenied) find(hash uint64, key string, l Limit) int32 {
	for i := *t.list(hash) - 1; i >= 0; i = t.entries[i].next - 1 {
		e := &t.entries[i]
		kept := min(e.length, MaxDeniedKey)
		if e.hash == hash && e.length == len(key) && string(e.key[:kept]) == key[:kept] && e.limit.sameState(l) {
			return i
		}
	}
	return -1
}

// enter gives key the entry of the one denied least, with its count.
func (t *TopDenied) enter(hash uint64, key string) int32 {
	i := t.ranks[0].entry
	e := &t.entries[i]
	if e.limit != (Limit{}) {
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

// count adds one to the count of entry i: it changes places with the last of those that
// had as many, and all are in order again.
func (t *TopDenied) count(i int32) {
	rank := int(t.entries[i].rank)
	had := t.ranks[rank].count
	last := rank + sort.Search(len(t.ranks)-rank-1, func(n int) bool { return t.ranks[rank+1+n].count > had })
	t.swap(rank, last)
	t.ranks[last].count++
}

func (t *TopDenied) swap(a, b int) {
	t.ranks[a], t.ranks[b] = t.ranks[b], t.ranks[a]
	t.entries[t.ranks[a].entry].rank = int32(a)
	t.entries[t.ranks[b].entry].rank = int32(b)
}
