package main

import (
	"fmt"
	"time"
)

// A Workload is a pattern of keys, and the answers that prove that it was run.
type Workload struct {
	Name  string
	Seq   Sequence
	Claim Claim

	// Denied says that every timed take finds its bucket empty; otherwise
	// every timed take is granted.
	Denied bool

	// Exact says that each pass takes each key equally often, so that a bucket
	// sized to the passes is empty after them, neither sooner nor later.
	Exact bool

	// Weigh says that the memory runs weigh the keys once they are resident.
	Weigh bool

	// Passes is how often a timed slice of the memory runs goes through Seq.
	Passes int

	// Warm is how many takes of Seq bring the Redis runs into a steady state;
	// the memory runs make one whole pass.
	Warm int
}

// Claim is what a workload says about its keys. Verify holds it to that.
type Claim struct {
	Keys    int     // exactly as many different keys in a pass; 0 means unsaid
	MinKeys int     // at least as many
	MinTop  float64 // the most frequent key has at least this share of the takes
	MaxTop  float64 // and at most this one
}

// Verify counts the keys of a pass and compares them with the claim.
func (w *Workload) Verify() error {
	keys, top := w.Seq.distinct()
	share := float64(top) / float64(w.Seq.Len())
	c := w.Claim
	switch {
	case c.Keys != 0 && keys != c.Keys:
		return fmt.Errorf("workload %q: claims %d keys, touches %d", w.Name, c.Keys, keys)
	case keys < c.MinKeys:
		return fmt.Errorf("workload %q: claims at least %d keys, touches %d", w.Name, c.MinKeys, keys)
	case share < c.MinTop || share > c.MaxTop:
		return fmt.Errorf("workload %q: claims %.4f to %.4f of the takes for its top key, has %.4f",
			w.Name, c.MinTop, c.MaxTop, share)
	}
	return nil
}

// refill is so slow that no token comes back while a slice runs, and expiries
// in Redis are far away.
const refill = 5 * time.Minute

// hotKey takes from one key only; a pass is long enough to hide its loop.
func hotKey(passes int) *Workload {
	const n = 1024
	return &Workload{
		Name: "one hot key", Seq: repeatedKey(n), Passes: passes, Exact: true, Warm: 64,
		Claim: Claim{Keys: 1, MinTop: 1, MaxTop: 1},
	}
}

// uniform takes from each of n keys once a pass, in random order.
func uniform(n int) *Workload {
	return &Workload{
		Name: count(n) + " uniform keys", Seq: shuffledKeys(n), Passes: 1, Exact: true, Warm: n, Weigh: true,
		Claim: Claim{Keys: n, MaxTop: 1 / float64(n)},
	}
}

// zipf takes draws times from n keys of which few are popular.
func zipf(draws, n, passes int) *Workload {
	return &Workload{
		Name: "Zipf over " + count(n), Seq: zipfKeys(draws, n), Passes: passes, Warm: min(draws, 2048),
		Claim: Claim{MinKeys: draws / 10, MinTop: 0.05, MaxTop: 0.25},
	}
}

// denial takes from n keys whose buckets are empty.
func denial(n, passes int) *Workload {
	return &Workload{
		Name: "denial", Seq: shuffledKeys(n), Passes: passes, Denied: true, Warm: n,
		Claim: Claim{Keys: n, MaxTop: 1 / float64(n)},
	}
}

// keys is how many different keys the workload may touch.
func (w *Workload) keys() int { return max(w.Claim.Keys, w.Claim.MinKeys) }

// memoryTerms sizes the bucket so that slices timed slices and the warm-up
// pass before them get the answers the workload claims.
func (w *Workload) memoryTerms(slices int) Terms {
	burst := int64(1 + slices*w.Passes)
	switch {
	case w.Denied:
		burst = 1
	case w.Claim.Keys == 0 || w.Claim.Keys == 1: // one key may get every take
		burst *= int64(w.Seq.Len())
	}
	return Terms{Burst: burst, Every: refill}
}

// redisTerms sizes the bucket for a closed loop of unknown length: what leases decide is millions in a second.
func (w *Workload) redisTerms() Terms {
	if w.Denied {
		return Terms{Burst: 1, Every: refill}
	}
	return Terms{Burst: 15_000_000, Every: refill}
}

// Answers is what a contender said to a run of takes.
type Answers struct{ Granted, Denied int64 }

// check compares the answers with what was to be said.
func (a Answers) check(denied bool) error {
	if denied && a.Granted > 0 {
		return fmt.Errorf("%d of %d takes were granted where all had to be denied", a.Granted, a.Granted+a.Denied)
	}
	if !denied && a.Denied > 0 {
		return fmt.Errorf("%d of %d takes were denied where all had to be granted", a.Denied, a.Granted+a.Denied)
	}
	return nil
}

// count writes 1000000 as 1M and 10000 as 10k.
func count(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
