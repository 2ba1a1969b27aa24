package console

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/observe"
)

func call(took time.Duration) observe.Call { return observe.Call{Took: took} }

// Among 20,000 keys, those denied most are found, with counts that are never too large.
func TestDeniedKeys(t *testing.T) {
	var d deniedKeys
	now := time.Unix(1_800_000_000, 0)
	d.tick(now, 0)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]uint64{}
	for i := range 100_000 {
		key := fmt.Sprint("ip:", random.IntN(20_000))
		if i%4 == 0 {
			key = fmt.Sprint("bot:", random.IntN(10))
		}
		want[key]++
		d.add(ruleID{name: "api"}, key, 1, false)
	}
	top := d.top(20)["api"]
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
	var d deniedKeys
	start := time.Unix(1_800_000_000, 0).Truncate(generation)
	d.tick(start, 0)
	rule := ruleID{"edge", "user"}
	d.add(rule, "k", 3, false)
	d.add(rule, "k", 4, true)
	d.tick(start.Add(generation), time.Second)
	d.add(rule, "k", 5, false)
	if got := d.top(9)["edge/user"]; len(got) != 1 || got[0].Denied != 8 || got[0].Shadow != 4 {
		t.Errorf("over two generations: %+v", got)
	}
	d.tick(start.Add(2*generation), time.Second)
	if got := d.top(9)["edge/user"]; len(got) != 1 || got[0].Denied != 5 {
		t.Errorf("after two generations: %+v", got)
	}
	d.tick(start.Add(3*generation), time.Second)
	d.tick(start.Add(4*generation), time.Second)
	if n := len(*d.tables.Load()); n != 0 || len(d.top(9)) != 0 {
		t.Errorf("%d rules are kept", n)
	}
}

// The rate of a key follows its denials within some seconds, also in a new generation.
func TestRateOfAKey(t *testing.T) {
	var d deniedKeys
	now := time.Unix(1_800_000_000, 0).Truncate(generation).Add(generation - 20*time.Second)
	d.tick(now, 0)
	rate := func(seconds int, n uint64) float64 {
		for range seconds {
			if n > 0 {
				d.add(ruleID{name: "api"}, "k", n, false)
			}
			now = now.Add(time.Second)
			d.tick(now, time.Second)
		}
		return d.top(1)["api"][0].Rate
	}
	if r := rate(40, 100); r < 98 || r > 102 {
		t.Errorf("%v a second, want 100", r)
	}
	if r := rate(15, 0); r > 6 {
		t.Errorf("%v a second after the end", r)
	}
}

func TestDeniedKeysAreBounded(t *testing.T) {
	var d deniedKeys
	var adding sync.WaitGroup
	for i := range 4 {
		adding.Go(func() {
			for j := range 5000 {
				d.add(ruleID{"edge", fmt.Sprint(j % 400)}, strings.Repeat("ü", 200)+fmt.Sprint(i), 1, false)
				d.add(ruleID{name: "api"}, fmt.Sprint(i, j), 1, false)
			}
		})
	}
	adding.Wait()
	tables := *d.tables.Load()
	if len(tables) != maxTables {
		t.Errorf("%d rules", len(tables))
	}
	api := tables[ruleID{name: "api"}].now
	if len(api.entries) != maxEntries || len(api.heap) != maxEntries {
		t.Errorf("%d keys, %d in the heap", len(api.entries), len(api.heap))
	}
	for key := range tables[ruleID{"edge", "0"}].now.entries {
		if want := strings.Repeat("ü", maxKeyBytes/2) + "…"; key != want {
			t.Errorf("a long key is %q", key)
		}
	}
}

// The denial of a known key allocates nothing.
func TestADenialDoesNotAllocate(t *testing.T) {
	var d deniedKeys
	c := newConsole(t, nil)
	e := ruleID{"edge", "user"}
	d.add(e, "k", 1, false)
	if n := testing.AllocsPerRun(1000, func() { d.add(e, "k", 1, false) }); n != 0 {
		t.Errorf("%v allocations for a denial", n)
	}
	c.decide(0, "k", 1)
	if n := testing.AllocsPerRun(1000, func() { c.decide(0, "k", 1) }); n > 1 {
		t.Errorf("%v allocations for a decision", n)
	}
}

func BenchmarkDenial(b *testing.B) {
	var d deniedKeys
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("ip:192.0.2.", i)
	}
	for _, n := range []int{10, 1000} { // with and without a place for each
		b.Run(fmt.Sprint(n, " keys"), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.add(ruleID{name: "api"}, keys[i%n], 1, false)
				i++
			}
		})
	}
}
