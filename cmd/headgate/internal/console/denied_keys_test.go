package console

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/observe"
)

func call(took time.Duration) observe.Call { return observe.Call{Took: took} }

// Among 20,000 keys, those denied most are found, with counts that are never too large.
func TestDeniedKeys(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := newDeniedKeys(now)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]uint64{}
	for i := range 100_000 {
		key := fmt.Sprint("ip:", random.IntN(20_000))
		if i%4 == 0 {
			key = fmt.Sprint("bot:", random.IntN(10))
		}
		want[key]++
		d.add(ruleID{name: "api"}, key, 1, false, nil)
	}
	d.tick(now.Add(time.Second))
	top := d.most(20)["api"]
	for i, k := range top {
		if k.Denied > want[k.Key] || i < 10 && k.Denied < want[k.Key]*9/10 {
			t.Errorf("%+v, of %d", k, want[k.Key])
		}
		if i < 10 && !strings.HasPrefix(k.Key, "bot:") {
			t.Errorf("place %d: %s", i, k.Key)
		}
	}
}

// Keys are forgotten after one to two generations, and rules with them.
func TestDeniedKeysAreForgotten(t *testing.T) {
	start := time.Unix(1_800_000_000, 0).Truncate(generation)
	d := newDeniedKeys(start)
	rule := ruleID{"edge", "user"}
	d.add(rule, "k", 3, false, nil)
	d.add(rule, "k", 4, true, nil)
	d.tick(start.Add(generation))
	d.add(rule, "k", 5, false, nil)
	d.tick(start.Add(generation + time.Second))
	if got := d.most(9)["edge/user"]; len(got) != 1 || got[0].Denied != 8 || got[0].Shadow != 4 {
		t.Errorf("over two generations: %+v", got)
	}
	d.tick(start.Add(2 * generation))
	d.tick(start.Add(2*generation + time.Second))
	if got := d.most(9)["edge/user"]; len(got) != 1 || got[0].Denied != 5 || got[0].Shadow != 0 {
		t.Errorf("after two generations: %+v", got)
	}
	d.tick(start.Add(3 * generation))
	if n := len(d.tables); n != 0 || len(d.most(9)) != 0 {
		t.Errorf("%d rules are kept", n)
	}
}

// The rate of a key is right from the first second on. Later, it is the mean of the last 5
// seconds, also in a new generation.
func TestRateOfAKey(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).Truncate(generation).Add(generation - 20*time.Second)
	d := newDeniedKeys(now)
	rate := func(seconds int, n uint64) float64 {
		for range seconds {
			if n > 0 {
				d.add(ruleID{name: "api"}, "k", n, false, nil)
			}
			now = now.Add(time.Second)
			d.tick(now)
		}
		return d.most(1)["api"][0].Rate
	}
	if r := rate(1, 100); r < 98 || r > 102 {
		t.Errorf("%v a second after the first one, want 100", r)
	}
	if r := rate(40, 100); r < 98 || r > 102 {
		t.Errorf("%v a second, want 100", r)
	}
	if r := rate(4, 0); r < 19 || r > 21 {
		t.Errorf("%v a second, want 20", r)
	}
	if r := rate(1, 0); r != 0 {
		t.Errorf("%v a second after the end", r)
	}
}

// A key that has lost its entry and has a new one has no negative rate.
func TestRateOfAKeyThatComesBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := newDeniedKeys(now)
	for range 20 {
		for i := range 10 * maxEntries {
			d.add(ruleID{name: "api"}, fmt.Sprint(i), 1, false, nil)
		}
		now = now.Add(time.Second)
		d.tick(now)
		for _, k := range d.most(maxEntries)["api"] {
			if k.Rate < 0 || k.Rate > 10*maxEntries {
				t.Fatalf("%+v", k)
			}
		}
	}
}

func TestDeniedKeysAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := newDeniedKeys(now)
	var adding sync.WaitGroup
	for i := range 4 {
		adding.Go(func() {
			for j := range 5000 {
				d.add(ruleID{"edge", fmt.Sprint(j % 400)}, strings.Repeat("ü", 200)+fmt.Sprint(i), 1, false, nil)
				d.add(ruleID{name: "api"}, fmt.Sprint(i, j), 1, false, nil)
			}
		})
	}
	adding.Wait()
	d.tick(now.Add(time.Second))
	if len(d.tables) != maxTables {
		t.Errorf("%d rules", len(d.tables))
	}
	if n := len(d.tables[deniedID{rule: ruleID{name: "api"}}].keys); n != maxEntries {
		t.Errorf("%d keys", n)
	}
	want := strings.Repeat("ü", 126) + "…"
	if keys := d.most(9)["edge/0"]; len(keys) != 1 || keys[0].Key != want || len(want) > maxKeyBytes {
		t.Errorf("a long key is %+v", keys)
	}
}

// The denial of a known key allocates nothing.
func TestADenialDoesNotAllocate(t *testing.T) {
	d := newDeniedKeys(time.Unix(1_800_000_000, 0))
	e := ruleID{"edge", "user"}
	d.add(e, "k", 1, false, nil)
	if n := testing.AllocsPerRun(1000, func() { d.add(e, "k", 1, false, nil) }); n != 0 {
		t.Errorf("%v allocations for a denial", n)
	}
}

// While no instance has viewers, a decision allocates nothing and waits for no lock.
func TestADecisionCostsNothingWhileNobodyLooks(t *testing.T) {
	c := newConsole(t, nil)
	now := time.Unix(1_800_000_000, 0)
	r := &runner{
		handler: c.Handler, id: "a", rules: ruleList{handler: c.Handler},
		counters: newCounterReader(c.options.Metrics, c.options.Statistics, now),
		viewers:  map[*viewer]struct{}{},
	}
	free := func(when string) {
		t.Helper()
		e := rules.Event{Rule: &c.rules[0], Key: "ip:192.0.2.1", Outcome: rules.Denied}
		over := envoy.Denial{Counters: &envoy.Counters{Domain: "edge", Path: "user"}, Key: "edge|user=u", Hits: 1}
		if n := testing.AllocsPerRun(1000, func() { c.Decided(&e); c.OverLimit(over) }); n != 0 {
			t.Errorf("%s: %v allocations", when, n)
		}
	}
	r.tick(now)
	free("before the first viewer")

	v := &viewer{events: make(chan []byte, viewerQueue)}
	r.join(v, now)
	counted := c.denied.Load()
	c.decide(0, "ip:192.0.2.1", rules.Denied)
	r.tick(now.Add(time.Second))
	var s seen
	s.read(t, v)
	if keys := s.rule(t, "api").DeniedKeys; len(keys) != 1 || s.state.DeniedSince != now.UnixMilli() {
		t.Errorf("with a viewer: %+v since %d", keys, s.state.DeniedSince)
	}
	r.drop(v)
	for i := range 3 { // a page is loaded again
		r.tick(now.Add(time.Duration(2+i) * time.Second))
	}
	if r.join(v, now.Add(4*time.Second)); c.denied.Load() != counted {
		t.Error("a page that is loaded again starts new counts")
	}
	r.drop(v)
	for i := range 8 {
		r.tick(now.Add(time.Duration(5+i) * time.Second))
	}
	counted.mu.Lock() // a decision that takes it waits for ever
	defer counted.mu.Unlock()
	decided := make(chan struct{})
	go func() { defer close(decided); free("after the last viewer") }()
	select {
	case <-decided:
	case <-time.After(time.Minute):
		t.Fatal("a decision waits for a lock of the console")
	}
}
