package sample

import (
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// rule holds the decisions of one rule. All but level is guarded by the lock of its Sample.
type rule struct {
	level   atomic.Uint32 // keys of at least this class are in
	keys    map[string]*key
	entries []entry // in the order of time
	head    int     // the first of entries that counts
	dropped int     // entries before head, since the beginning
	bytes   int
	since   [maxLevel + 1]time.Time // when keys of a class came in again; zero: always in
}

// key is a key that has entries.
type key struct {
	text    string
	class   uint32
	entries int
	last    int // the place of its last entry, since the beginning; -1: not known
}

// entry is one decision, or several equal ones of a key within a [span].
type entry struct {
	at      int64 // Unix microseconds, of the first
	key     *key
	cost    int64
	n       uint32
	outcome rules.Outcome
	cause   rules.Cause
}

// maxEqual bounds the decisions of one entry, so that a Recent can leave entries out.
const maxEqual = 10_000

const entryBytes = int(unsafe.Sizeof(entry{}))

// add adds a decision, and returns the bytes that it takes.
func (r *rule) add(e *rules.Event, class uint32, now time.Time) (bytes int) {
	k := r.keys[e.Key]
	if k == nil {
		k = &key{text: strings.Clone(e.Key), class: class, last: -1}
		r.keys[k.text] = k
		bytes = keyBytes + len(k.text)
	}
	at := now.UnixMicro()
	if last := r.last(k); last != nil && last.cost == e.Cost && last.outcome == e.Outcome &&
		last.cause == e.Cause && at-last.at < span.Microseconds() && at >= last.at && last.n < maxEqual {
		last.n++
		return bytes
	}
	k.entries++
	k.last = r.dropped + len(r.entries) - r.head
	r.entries = append(r.entries, entry{
		at: at, key: k, cost: e.Cost, n: 1, outcome: e.Outcome, cause: e.Cause,
	})
	bytes += entryBytes
	r.bytes += bytes
	return bytes
}

// last returns the last entry of k, if it is known.
func (r *rule) last(k *key) *entry {
	if k.last < r.dropped {
		return nil
	}
	return &r.entries[r.head+k.last-r.dropped]
}

// dropBefore drops the entries before a time, and returns the bytes that they took.
func (r *rule) dropBefore(at int64) (bytes int) {
	for r.head < len(r.entries) && r.entries[r.head].at < at {
		bytes += r.forget(r.entries[r.head].key)
		r.head++
		r.dropped++
	}
	if r.head > len(r.entries)/2 {
		r.entries = append([]entry(nil), r.entries[r.head:]...)
		r.head = 0
	}
	r.bytes -= bytes
	return bytes
}

// forget drops one entry of k.
func (r *rule) forget(k *key) (bytes int) {
	if k.entries--; k.entries > 0 {
		return entryBytes
	}
	delete(r.keys, k.text)
	return entryBytes + keyBytes + len(k.text)
}

// complete returns the lowest class from which on all keys have been in for a Window: of the others
// a part of the history is missing. If there is no such key, all count.
func (r *rule) complete(now time.Time) uint32 {
	level := r.level.Load()
	lowest := level
	for lowest < maxLevel && now.Sub(r.since[lowest]) < Window {
		lowest++
	}
	for _, k := range r.keys {
		if k.class >= lowest {
			return lowest
		}
	}
	return level
}

// halve drops the keys of the lowest class, and returns the bytes that they took. If no class is left,
// it drops all keys.
func (r *rule) halve() (bytes int) {
	level := r.level.Load() + 1
	if level <= maxLevel {
		r.level.Store(level)
	}
	kept := make([]entry, 0, len(r.entries)-r.head)
	for _, e := range r.entries[r.head:] {
		if e.key.class < level {
			bytes += r.forget(e.key)
			continue
		}
		e.key.last = r.dropped + len(kept)
		kept = append(kept, e)
	}
	r.entries, r.head = kept, 0
	r.bytes -= bytes
	return bytes
}

// double lets the keys of one more class in.
func (r *rule) double(now time.Time) {
	if level := r.level.Load(); level > 0 {
		r.since[level-1] = now
		r.level.Store(level - 1)
	}
}
