package main

import (
	"io"
	"time"
)

// A Contender is one limiter under measurement: it enforces the Terms it was
// opened with on every key separately, and takes one token a call.
// Take is called by many goroutines at once.
type Contender interface {
	Take(key string) (allowed bool, err error)
}

// Terms is the limit a contender enforces on each key: a bucket that starts
// with Burst tokens and gets one back each Every. A contender that counts in
// windows allows Burst in a window of Period instead. The first Burst takes
// of a key are granted and the next is denied either way, as long as a run is
// shorter than Every.
type Terms struct {
	Burst int64
	Every time.Duration
}

// Period is the time in which an empty bucket fills up.
func (t Terms) Period() time.Duration { return time.Duration(t.Burst) * t.Every }

// Setup is what a contender is opened with.
type Setup struct {
	Terms

	Keys int    // how many keys will be resident, for those that can reserve room
	Addr string // host:port of the Redis server; empty for a memory contender
}

// An Entry is one row of the field: a contender and how to measure it.
type Entry struct {
	Name string
	Open func(Setup) (Contender, error)

	// OneKey marks a limiter that has no keys: it runs on workloads of one key.
	OneKey bool

	// RedisKeys is how many keys in Redis the contender makes for one limited
	// key; 0 means one, and noKeys none.
	RedisKeys int

	// ExtraKeys is how many keys in Redis the contender may make besides.
	ExtraKeys int

	// Only restricts the entry to the workload of this name; empty means all.
	Only string
}

// runs reports whether the entry takes part in w.
func (e Entry) runs(w *Workload) bool {
	return (!e.OneKey || w.Claim.Keys == 1) && (e.Only == "" || e.Only == w.Name)
}

// noKeys as the RedisKeys of an entry says that it keeps nothing in Redis.
const noKeys = -1

// redisKeys is the number that RedisKeys stands for.
func (e Entry) redisKeys() int {
	switch e.RedisKeys {
	case 0:
		return 1
	case noKeys:
		return 0
	}
	return e.RedisKeys
}

// closeContender frees what c holds, if it holds anything.
func closeContender(c Contender) error {
	if cl, ok := c.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}

// rotated is es beginning at entry n, so that no contender always runs after
// the same neighbour.
func rotated(es []Entry, n int) []Entry {
	n %= len(es)
	return append(append(make([]Entry, 0, len(es)), es[n:]...), es[:n]...)
}
