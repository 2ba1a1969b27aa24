package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Workload is a sequence of keys and the answers that are expected.
type Workload struct {
	Name   string
	Seq    Sequence
	Keys   int  // different keys in Seq, each as often as the others
	Passes int  // passes through Seq in a timed run in this process
	Denied bool // all takes are denied after the first of each key; otherwise all are granted
}

// refill is so slow that no token comes back during a run.
const refill = 5 * time.Minute

// hotKeyName and denialName are workloads that budgets name.
const (
	hotKeyName = "one hot key"
	denialName = "1k keys, denied"
)

// hotKey takes from one key only.
func hotKey(passes int, name func(int) string) Workload {
	return Workload{Name: hotKeyName, Seq: repeatedKey(1024, name), Keys: 1, Passes: passes}
}

// uniform takes from each of n keys once in a pass, in random order.
func uniform(n int, name func(int) string) Workload {
	return Workload{Name: count(n) + " random keys", Seq: shuffledKeys(n, name), Keys: n, Passes: 1}
}

// denial takes from keys whose buckets are empty.
func denial() Workload {
	w := uniform(1000, keyOf)
	w.Name, w.Denied = denialName, true
	return w
}

// verify checks that the workload has as many keys as it says.
func (w Workload) verify() error {
	if n := w.Seq.distinct(); n != w.Keys {
		return fmt.Errorf("workload %q: has %d keys; want %d", w.Name, n, w.Keys)
	}
	return nil
}

// memoryTerms makes buckets that the warm-up and runs timed runs empty exactly.
func (w Workload) memoryTerms(runs int) Terms {
	return Terms{Burst: int64(1+runs*w.Passes) * int64(w.Seq.Len()/w.Keys), Every: refill}
}

// redisTerms makes buckets for runs of unknown length. No key may expire in a run: a key that was
// taken once lives for Every in some contenders.
func (w Workload) redisTerms() Terms {
	if w.Denied {
		return Terms{Burst: 1, Every: refill}
	}
	return Terms{Burst: 15_000_000, Every: time.Minute}
}

// Answers counts what a contender answered.
type Answers struct{ Granted, Denied int64 }

func (a *Answers) add(b Answers) {
	a.Granted += b.Granted
	a.Denied += b.Denied
}

func (a *Answers) all() float64 { return float64(a.Granted + a.Denied) }

// check returns an error unless all takes were denied, or all were granted.
func (a *Answers) check(denied bool) error {
	if denied && a.Granted > 0 {
		return fmt.Errorf("%d of %.0f takes were granted; want none", a.Granted, a.all())
	}
	if !denied && a.Denied > 0 {
		return fmt.Errorf("%d of %.0f takes were denied; want none", a.Denied, a.all())
	}
	return nil
}

// takeAll takes from the keys lo to hi of seq, passes times.
func takeAll(
	ctx context.Context, c Contender, seq Sequence, lo, hi, passes int,
) (a Answers, err error) {
	var granted, takes int64 // not in a: the loop is timed
	for range passes {
		for i := lo; i < hi; i++ {
			ok, err := c.Take(ctx, seq.Key(i))
			if err != nil {
				return a, fmt.Errorf("key %q: %w", seq.Key(i), err)
			}
			if ok {
				granted++
			}
			takes++
		}
	}
	return Answers{Granted: granted, Denied: takes - granted}, nil
}

// warmUp takes every key of seq once, and checks the answers. Each key is a string of its own, as
// requests bring it, so what a contender keeps of it is counted. The order is not that of the
// timed runs: otherwise contenders with an object for each key would find them in order in memory.
func warmUp(c Contender, seq Sequence) (a Answers, err error) {
	for _, i := range random(2).Perm(seq.Len()) {
		ok, err := c.Take(context.Background(), strings.Clone(seq.Key(i)))
		if err != nil {
			return a, err
		}
		if ok {
			a.Granted++
		} else {
			a.Denied++
		}
	}
	return a, nil
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
