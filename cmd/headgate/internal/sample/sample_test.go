package sample

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

var api = &rules.Rule{Name: "api"}

func event(key string, cost int64, o rules.Outcome) rules.Event {
	return rules.Event{Rule: api, Key: key, Cost: cost, Outcome: o}
}

func recentOf(t *testing.T, s *Sample, name string) Recent {
	t.Helper()
	found := s.recent(name, 1<<20)
	if len(found.Requests) == 0 {
		t.Fatalf("there is no sample of %s", name)
	}
	return found
}

// recent returns what s alone knows.
func (s *Sample) recent(name string, most int) Recent {
	return Together([]Part{s.Part(name)}, most, false)
}

// TestReplayOfTheSample: limits deny of the sample what a naive replay of all requests of the same
// keys denies, for random traffic of all costs. Requests of a key are far enough apart here that
// none shares the time of another.
func TestReplayOfTheSample(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { replayOfTheSample(t, seed) })
	}
}

func replayOfTheSample(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	s := New()
	s.budget = 60_000 // so that the share is halved
	var all []replay.Request
	for range 6000 {
		time.Sleep(time.Duration(20+random.IntN(60)) * time.Millisecond)
		k := fmt.Sprint("k", random.IntN(1+random.IntN(400)))
		if n := len(all); n > 0 && all[n-1].Key == k || n > 1 && all[n-2].Key == k || n > 2 && all[n-3].Key == k {
			continue
		}
		cost := 1 + random.Int64N(3)
		all = append(all, replay.Request{At: time.Now(), Key: k, Cost: cost})
		s.Add(event(k, cost, rules.Outcome(random.IntN(3))))
		s.Add(event(k, 0, rules.ShadowDenied)) // a peek
		s.Add(event(k, 1, rules.Failed))
	}
	found := recentOf(t, s, "api")
	if found.KeyShare == 1 || found.KeyShare < 1.0/32 || found.Keys == 0 {
		t.Fatalf("seed %d: the share is %v of %d keys", seed, found.KeyShare, found.Keys)
	}
	keys := map[string]bool{}
	for _, r := range found.Requests {
		keys[r.Key] = true
	}
	if len(keys) != found.Keys || found.To != time.Now() {
		t.Fatalf("%d keys in the requests, %d counted", len(keys), found.Keys)
	}
	limits := []headgate.Limit{headgate.PerMinute(3), headgate.SlidingLog(5, time.Minute), headgate.FixedWindow(9, time.Hour)}
	got, err := replay.RunRequests(t.Context(), replay.Config{Limits: limits, Detail: true}, found.Requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range limits {
		requests, denied := naive(t, l, all, keys, found.From)
		if got.Requests != requests || got.Limits[i].Denied != denied || denied == 0 {
			t.Errorf("seed %d, %s: %d of %d denied, naively %d of %d", seed, l, got.Limits[i].Denied, got.Requests, denied, requests)
		}
		if got.Detail == nil || got.Detail.Timeline == nil {
			t.Error("there is no detail")
		}
	}
}

// naive replays the requests of keys that are not before a time.
func naive(
	t *testing.T, l headgate.Limit, all []replay.Request, keys map[string]bool, from time.Time,
) (requests, denied int64) {
	store := headgate.NewMemory(0)
	for _, r := range all {
		if !keys[r.Key] || r.At.Before(from) {
			continue
		}
		requests++
		d, err := store.Take(t.Context(), headgate.Request{Key: r.Key, Limit: l, Cost: r.Cost, At: r.At})
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed() {
			denied++
		}
	}
	return requests, denied
}

// TestHotKey: the requests of a key within 50 ms take one entry, so that a flood of one key leaves
// the others in the sample, and each request is there.
func TestHotKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		denied := int64(0)
		for i := range 100_000 {
			time.Sleep(time.Millisecond)
			o := rules.Allowed
			if i%2000 >= 1000 {
				o = rules.Denied
				denied++
			}
			s.Add(event("hot", 1, o))
			if i%100 == 0 {
				s.Add(event(fmt.Sprint("key ", i%1000), 1, rules.Allowed))
			}
		}
		found := recentOf(t, s, "api")
		if len(found.Requests) != 101_000 || found.Keys != 11 || found.KeyShare != 1 || found.Denied != denied {
			t.Errorf("%d requests of %d keys, share %v, %d denied", len(found.Requests), found.Keys, found.KeyShare, found.Denied)
		}
		if n := len((*s.rules.Load())["api"].entries); n > 3100 {
			t.Errorf("they take %d entries", n)
		}
		for i, r := range found.Requests[1:] {
			if r.At.Before(found.Requests[i].At) {
				t.Fatal("they are not in the order of time")
			}
		}
		short := s.recent("api", 1000)
		if n := len(short.Requests); n > 1000 || n < 900 || short.Requests[0].At.Before(short.From) {
			t.Errorf("of at most 1000 requests: %d, from %v", n, short.From)
		}
	})
}

// TestShareAdapts: it is halved under a flood of keys, for the rule that has it, and doubled when
// the flood is over. What came in again counts once its history is complete.
func TestShareAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.budget = 100_000
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		calm := &rules.Rule{Name: "calm"}
		flood := func(n int) {
			for i := range n {
				time.Sleep(10 * time.Millisecond)
				s.Add(event(fmt.Sprint("key ", i), 1, rules.Allowed))
				if i%1000 == 0 {
					s.Add(rules.Event{Rule: calm, Key: fmt.Sprint(i % 10_000), Cost: 1})
				}
			}
		}
		flood(60_000)
		found := recentOf(t, s, "api")
		if found.KeyShare > 1.0/64 || found.KeyShare < 1.0/1024 {
			t.Errorf("after a flood, the share is %v", found.KeyShare)
		}
		if n := float64(found.Keys) / found.KeyShare; n < 30_000 || n > 120_000 {
			t.Errorf("%d keys at a share of %v", found.Keys, found.KeyShare)
		}
		if other := recentOf(t, s, "calm"); other.KeyShare != 1 || len(other.Requests) != 60 {
			t.Errorf("of a rule without a flood: share %v, %d requests", other.KeyShare, len(other.Requests))
		}
		for range 60 * 40 {
			time.Sleep(time.Second)
			s.Add(event("steady", 1, rules.Denied))
			s.Add(event(fmt.Sprint("other ", rand.IntN(20)), 1, rules.Allowed))
		}
		found = recentOf(t, s, "api")
		if found.KeyShare != 1 || found.Keys < 15 || found.To.Sub(found.From) != Window {
			t.Errorf("40 minutes later, the share is %v of %d keys since %v", found.KeyShare, found.Keys, found.From)
		}
		time.Sleep(Window + time.Second)
		if n := len(s.recent("api", 10).Requests); n > 0 || s.bytes != 0 {
			t.Errorf("after a Window without requests, there are %d bytes", s.bytes)
		}
	})
}

// TestMemoryIsBounded: whatever keys come, and however long they are. What is counted is what is
// there.
func TestMemoryIsBounded(t *testing.T) {
	s := New()
	random := rand.New(rand.NewPCG(1, 1))
	long := string(make([]byte, 4000))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 400_000 {
		k := fmt.Sprint(random.Uint64())
		if i%100 == 0 {
			k += long
		}
		s.Add(rules.Event{Rule: &rules.Rule{Name: fmt.Sprint("r", i%7)}, Key: k, Cost: 1})
		if s.bytes > budget {
			t.Fatalf("%d bytes are counted, above %d", s.bytes, budget)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int(after.HeapAlloc - before.HeapAlloc); grown > 3*budget {
		t.Errorf("it takes %d bytes", grown)
	}
	total := 0
	for _, r := range *s.rules.Load() {
		own := (len(r.entries) - r.head) * entryBytes
		for _, k := range r.keys {
			own += keyBytes + len(k.text)
		}
		if own != r.bytes {
			t.Errorf("%d bytes are counted of %d", r.bytes, own)
		}
		total += own
	}
	if total != s.bytes || total < budget/8 {
		t.Errorf("%d bytes are counted of %d", s.bytes, total)
	}
}

// TestNotSampledAllocatesNothing: a decision whose key is not in the sample.
func TestNotSampledAllocatesNothing(t *testing.T) {
	s := New()
	s.Add(event("k", 1, rules.Allowed))
	(*s.rules.Load())["api"].level.Store(maxLevel)
	e := event("not sampled", 1, rules.Allowed)
	if n := testing.AllocsPerRun(1000, func() { s.Add(e) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	if n := len((*s.rules.Load())["api"].entries); n != 1 {
		t.Errorf("it was sampled: there are %d entries", n)
	}
}

// TestConcurrent: decisions, looks and sweeps at the same time; it is for the race detector, and no
// decision of a sampled key is lost.
func TestConcurrent(t *testing.T) {
	s := New()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				s.Add(event(fmt.Sprint(g, " ", i%50), 1, rules.Allowed))
				s.Add(rules.Event{Rule: &rules.Rule{Name: fmt.Sprint("r", i%20)}, Key: "k", Cost: 1})
				if i%500 == 0 {
					_ = s.recent("api", 100)
					s.sweep(time.Now())
				}
			}
		})
	}
	all.Wait()
	if n := len(recentOf(t, s, "api").Requests); n != 8000 {
		t.Errorf("%d requests, want 8000", n)
	}
}
