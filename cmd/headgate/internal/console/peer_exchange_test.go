package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// opened opens the store of server, until the test ends. In a bubble its time passes only while no
// answer of Redis is awaited.
func opened(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// prometheus returns the decisions of a rule that the page of the metrics of c has.
func (c *console) prometheus(rule string) (sum counts) {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(c.t.Context(), "GET", "/", nil))
	for line := range strings.Lines(w.Body.String()) {
		for i, outcome := range []string{"allowed", "denied", "shadow_denied", "error"} {
			name := fmt.Sprintf(`headgate_decisions_total{outcome="%s",rule="%s"} `, outcome, rule)
			if value, ok := strings.CutPrefix(line, name); ok {
				n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
				if err != nil {
					c.t.Fatal(err)
				}
				sum[i] = n
			}
		}
	}
	sum[allowed] += sum[shadowDenied] // what a rule in shadow would deny is allowed
	return sum
}

// instances are consoles that share a Redis.
type instances []*console

// work lets each of them decide for so many seconds, another number each second.
func (all instances) work(seconds int) {
	for second := range seconds {
		for i, c := range all {
			for range 1 + i + second%3 {
				c.decide(0, "ip:bot", rules.Denied)
				c.decide(0, fmt.Sprint("ip:", i), rules.Denied)
				c.decide(0, "ip:good", rules.Allowed)
				c.decide(1, "ip:good", rules.ShadowDenied)
			}
		}
		time.Sleep(time.Second)
	}
}

// prometheus returns the sum of the pages of metrics.
func (all instances) prometheus(rule string) (sum counts) {
	for _, c := range all {
		c.prometheus(rule).addTo(&sum)
	}
	return sum
}

// Whichever instance is asked, it shows what all of them have decided: the sums of their pages of
// metrics, and the keys that all of them denied.
func TestFleet(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		var all instances
		var stops []func()
		for i := range 3 {
			c := newConsole(t, opened(t, redis.URL()+redistest.Patient+"&prefix=fleet:"))
			c.instance = fmt.Sprint("host-", i)
			all = append(all, c)
			stop := c.run()
			defer stop()
			stops = append(stops, stop)
		}
		all.work(47)
		before := all.prometheus("api")[denied] / 2
		v, s := all[1].look(), &seen{}
		s.read(t, v)
		time.Sleep(3 * time.Second) // all instances count denied keys
		for range 20 {
			all.work(2)
			s.read(t, v)
		}
		other, seenByOther := all[2].look(), &seen{}
		for range 10 {
			time.Sleep(time.Second)
			s.read(t, v)
			seenByOther.read(t, other)
		}
		for _, rule := range []string{"api", "trial"} {
			want := all.prometheus(rule)
			if got := s.total(rule); got != want {
				t.Errorf("%s: %v, and the pages of metrics have %v", rule, got, want)
			}
			if got := seenByOther.total(rule); got != want {
				t.Errorf("%s, seen by another: %v, want %v", rule, got, want)
			}
		}
		if len(s.state.Instances) != 3 || s.state.Instances[0].Name != "host-1" {
			t.Errorf("instances: %+v", s.state.Instances)
		}
		top, bots := s.rule(t, "api").DeniedKeys, all.prometheus("api")[denied]/2-before
		if len(top) != 4 || top[0].Key != "ip:bot" || top[0].Denied != bots {
			t.Errorf("the keys denied most: %+v, want ip:bot with %d", top, bots)
		}
		stops[0]() // at once: its requests come to the others, and would count twice
		for range 2 {
			time.Sleep(time.Second)
			s.read(t, v)
		}
		if len(s.state.Instances) != 2 {
			t.Errorf("after one ended: %+v", s.state.Instances)
		}
	})
}

// The first state that a viewer gets has the decisions of all instances.
func TestTheFirstStateIsOfAllInstances(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := newConsole(t, opened(t, redis.URL()+redistest.Patient)), newConsole(t, opened(t, redis.URL()+redistest.Patient))
		defer a.run()()
		defer b.run()()
		time.Sleep(7 * time.Second)
		v, s := a.look(), &seen{}
		for i := 0; s.state.At == 0; i++ {
			if i == 30 {
				t.Fatal("no state comes")
			}
			time.Sleep(100 * time.Millisecond)
			s.read(t, v)
		}
		if len(s.state.Instances) != 2 {
			t.Errorf("%+v", s.state.Instances)
		}
	})
}

// The store is not up while an exchange with the others says that it does not answer, although no
// ping has noticed it yet.
func TestTheStoreAgreesWithTheExchange(t *testing.T) {
	c, now := newConsole(t, opened(t, redistest.Start(t).URL()+redistest.Patient)), time.Now()
	r := &runner{
		handler: c.Handler, fleet: c.fleet, rules: ruleList{handler: c.Handler},
		counters: newCounterReader(c.metrics, c.options.Statistics, now), viewers: map[*viewer]struct{}{},
	}
	v, s := &viewer{events: make(chan []byte, viewerQueue)}, &seen{}
	r.join(v, now)
	r.asked = now.Add(answered)
	for _, at := range []struct {
		err  error
		want string
	}{{io.EOF, storeDown}, {context.DeadlineExceeded, storeSlow}, {nil, storeUp}} {
		r.receive(incoming{err: at.err}, now)
		s.read(t, v)
		store, own := s.state.Store.State, s.state.Instances[0].Store
		if store != at.want || own != at.want || (s.state.Alone == "") != (at.err == nil) {
			t.Errorf("%v: the store is %s and %s; %q", at.err, store, own, s.state.Alone)
		}
	}
}

// After an outage, the history of the others fills the gap, without counting anything twice.
func TestTheGapIsFilled(t *testing.T) {
	c, now := newConsole(t, opened(t, redistest.Start(t).URL()+redistest.Patient)), time.Now()
	r := &runner{
		handler: c.Handler, fleet: c.fleet, rules: ruleList{handler: c.Handler},
		counters: newCounterReader(c.metrics, c.options.Statistics, now), viewers: map[*viewer]struct{}{},
	}
	v, s := &viewer{events: make(chan []byte, viewerQueue)}, &seen{}
	r.join(v, now)
	var list []stepCounts
	for step := stepOf(now) - 9; step < stepOf(now)-3; step++ {
		list = append(list, stepCounts{At: stepStart(step), Rules: map[string]counts{"api": {denied: 1}}, Total: counts{denied: 1}})
	}
	other := &snapshot{ID: "b", Steps: list[3:]}
	past := func(list []stepCounts) map[string]past { return map[string]past{"b": {Steps: list}} }
	r.receive(incoming{histories: past(list[:2])}, now)
	r.receive(incoming{err: io.EOF}, now)
	if out, ok := r.outgoing(now); !ok || len(out.known) > 0 {
		t.Errorf("after an outage, it knows %v", out.known)
	}
	r.receive(incoming{snapshots: []*snapshot{other}}, now) // its history has expired
	r.receive(incoming{snapshots: []*snapshot{other}, histories: past(list)}, now)
	if s.read(t, v); s.total("api")[denied] != uint64(len(list)) {
		t.Errorf("%d denials; want %d", s.total("api")[denied], len(list))
	}
}

// A store whose p50 is near the bound does not change its state all the time, and the state is that
// of the times that are shown: those of all instances. A p99 does not make it slow, but decisions
// without it do, if there are many in two steps, until there have been none for some seconds.
func TestTheStoreStaysSlow(t *testing.T) {
	c, now := newConsole(t, opened(t, redistest.Start(t).URL()+redistest.Patient)), time.Now()
	r := &runner{
		handler: c.Handler, fleet: c.fleet, rules: ruleList{handler: c.Handler},
		counters: newCounterReader(c.metrics, c.options.Statistics, now), common: newHistory(9), sent: 9,
	}
	r.own = r.snapshot()
	other := &snapshot{ID: "b"}
	r.peers = map[string]peer{"b": {snapshot: other, heard: now}}
	var got []string
	for i, bound := range []float64{.01, .025, .01, .005, .01, .001, .001, .001, .001} {
		r.own.Calls = make([]uint64, len(metrics.CallBounds())+1)
		other.Calls = slices.Clone(r.own.Calls)
		r.own.Calls[slices.Index(metrics.CallBounds(), .1)] = 300
		r.own.Calls[0], other.Calls[slices.Index(metrics.CallBounds(), bound)] = 9, 991
		if i >= 5 {
			r.common.add(int64(min(i, 6)+3), "api", counts{allowed: 38, degraded: 2})
			other.Rates = map[string]rates{"api": {degraded: float64(max(0, 7-i))}}
			r.own.Instance.At += int64(max(0, i-6)) * 2_000
		}
		s := &seen{}
		s.take(t, string(r.state(now)))
		got = append(got, s.state.Store.State)
	}
	if want := []string{storeUp, storeSlow, storeSlow, storeUp, storeUp, storeUp, storeSlow, storeSlow, storeUp}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	fast := int64(9) // microseconds of decisions without the store
	r.common, r.isSlow, r.without = newHistory(9), true, r.own.Instance.At
	if got := r.storeState(&fast); got != storeSlow {
		t.Errorf("while decisions are made without a slow store, it is %s", got)
	}
}

// Who looks later sees what an instance counted before it stopped, and when that was. A rule that was
// removed is not listed.
func TestAStoppedInstanceIsSeenLater(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		url := redis.URL() + redistest.Patient
		all := instances{newConsole(t, opened(t, url)), newConsole(t, opened(t, url))}
		all[1].instance = "stopped"
		defer all[0].run()()
		stop := all[1].run()
		time.Sleep(2 * time.Second)
		all.work(12)
		stop()
		set, err := rules.NewSet(all[0].rules[:1])
		if err != nil {
			t.Fatal(err)
		}
		all[0].options.Engine.Use(set)
		all[0].metrics.Use(all[0].rules[:1])
		v, s := all[0].look(), &seen{}
		time.Sleep(10 * time.Second)
		s.read(t, v)
		for _, rule := range []string{"api", "trial"} {
			want := all[1].prometheus(rule)
			all[0].prometheus(rule).addTo(&want)
			if got := s.total(rule); rule == "api" && got != want || got[denied] != want[denied] {
				t.Errorf("%s: %v, want %v", rule, got, want)
			}
		}
		if len(s.state.Gone) != 1 || s.state.Gone[0].Name != "stopped" || s.state.Gone[0].At < s.state.Gone[0].Started {
			t.Errorf("gone: %+v", s.state.Gone)
		}
		for _, r := range s.state.Rules {
			if r.Name == "trial" {
				t.Errorf("a rule that was removed is listed: %+v", r)
			}
		}
	})
}

// A clock is off if the last five snapshots say so. One of them may be late.
func TestClocks(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for _, c := range []struct {
		ages []int64 // of snapshots, in milliseconds
		want int64
	}{
		{[]int64{900, 100, 700, 4000, 300}, 0}, {[]int64{-300_000, -299_500, -299_900, -299_000, -299_400}, 300_000},
		{[]int64{300_900, 300_100, 300_700, 304_000, 300_300}, -300_100}, {[]int64{300_900, 300_100}, 0},
	} {
		var p peer
		for i, age := range c.ages {
			at := now.Add(time.Duration(i) * time.Second)
			p = p.next(&snapshot{Instance: instance{At: at.UnixMilli() - age}}, at)
		}
		if got := p.next(&snapshot{Instance: p.snapshot.Instance}, now).snapshot.ahead; got != c.want {
			t.Errorf("%v: %d ms ahead, want %d", c.ages, got, c.want)
		}
	}
}

// Rules of another instance that differ are shown, unless one of them has too many.
func TestDifferentRules(t *testing.T) {
	c := newConsole(t, nil)
	with := func(hash string, lines ...string) *snapshot {
		return &snapshot{Instance: instance{Config: configState{Hash: hash}}, Lines: lines}
	}
	s := merge(&ruleList{handler: c.Handler}, with("1", "rule a: 1/s", "rule b: 2/s"), []*snapshot{
		with("2", "rule a: 1/s", "rule b: 3/s"), with("3", "rule a: 1/s", "rule b: 2/s"), with("4"),
		with("1"),
	}, nil)
	var got []string
	for _, i := range s.Instances[1:] {
		text, err := json.Marshal(i.Differs)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"removed":["rule b: 2/s"],"added":["rule b: 3/s"]}`, "null", `{"removed":null,"added":null}`, "null",
	}
	if !slices.Equal(got, want) {
		t.Error(got)
	}
}

// An instance without rules differs by all rules, also before it has loaded a file.
func TestAnInstanceWithoutRules(t *testing.T) {
	c := newConsole(t, nil)
	none, err := envoy.NewConfig(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	c.options.Domains.Use(none)
	waits, empty := New(c.options), New(c.options)
	empty.Use(new(config.Config), time.Now())
	own := &snapshot{Instance: instance{Config: configState{Hash: "1"}}, Lines: []string{"rule a: 1/s"}}
	for _, h := range []*Handler{waits, empty} {
		r := &runner{handler: h, counters: newCounterReader(c.metrics, c.options.Statistics, time.Now())}
		h.denied.Store(newDeniedKeys(time.Now()))
		text, err := json.Marshal(r.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		var other snapshot
		if err := json.Unmarshal(text, &other); err != nil {
			t.Fatal(err)
		}
		if d := differs(own, &other); d == nil || len(d.Removed) != 1 || d.Added == nil || len(d.Added) > 0 {
			t.Errorf("%+v", d)
		}
	}
}

// Without viewers, an instance only asks whether another instance has any.
func TestNobodyLooksAtTheFleet(t *testing.T) {
	redis := redistest.Start(t)
	do := func(args ...string) string {
		text, err := redis.Do(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	commands := func() map[string]int {
		n := map[string]int{}
		for line := range strings.Lines(do("INFO", "commandstats")) {
			name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
			if count, _, _ := strings.Cut(rest, ","); ok {
				n[name], _ = strconv.Atoi(count)
			}
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		c, other := newConsole(t, opened(t, redis.URL()+redistest.Patient)), newConsole(t, opened(t, redis.URL()+redistest.Patient))
		defer c.run()()
		defer other.run()()
		unwatched := func() {
			t.Helper()
			before, states := commands(), c.states.Load()+other.states.Load()
			time.Sleep(time.Minute)
			synctest.Wait()
			for name, n := range commands() {
				if more := n - before[name]; name == "get" && more > 242 || name != "get" && name != "info" && more > 0 {
					t.Errorf("%d commands %s in a minute", more, name)
				}
			}
			if more := c.states.Load() + other.states.Load() - states; more > 0 {
				t.Errorf("%d states were made", more)
			}
		}
		time.Sleep(2 * time.Second) // they have connected
		unwatched()
		if keys := do("KEYS", "*"); keys != "" {
			t.Errorf("there are keys: %s", keys)
		}
		v := c.look()
		time.Sleep(3 * time.Second)
		if keys := do("KEYS", "*"); strings.Count(keys, "now:") != 2 {
			t.Errorf("while somebody looks: %s", keys)
		}
		c.leave(v)
		time.Sleep(10 * time.Second)        // an exchange that was under way has ended
		do("DEL", "hg:{@console}:@watched") // which Redis does by its own clock
		time.Sleep(10 * time.Second)
		unwatched()
	})
}

// The Redis user with the least rights is enough.
func TestLeastRights(t *testing.T) {
	redis := redistest.Start(t)
	page, err := os.ReadFile("../../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "ACL SETUSER headgate ")
	line, _, _ := strings.Cut(rest, "\n")
	if _, err := redis.Do(t.Context(), append([]string{"ACL", "SETUSER", "headgate"},
		strings.Fields(line)...)...); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		url := "redis://headgate:secret@" + redis.Addr
		a, b := newConsole(t, opened(t, url)), newConsole(t, opened(t, url))
		defer a.run()()
		defer b.run()()
		v, s := a.look(), &seen{}
		time.Sleep(4 * time.Second)
		s.read(t, v)
		if s.state.Alone != "" || len(s.state.Instances) != 2 {
			t.Errorf("%q %+v", s.state.Alone, s.state.Instances)
		}
	})
}

// Of many rules, those with most decisions are shown, then those of the file.
func TestManyRules(t *testing.T) {
	c := newConsole(t, nil)
	var many []rules.Rule
	for i := range 300 {
		many = append(many, rules.Rule{Name: fmt.Sprint("r", i), Permits: 1})
	}
	set, err := rules.NewSet(many)
	if err != nil {
		t.Fatal(err)
	}
	c.options.Engine.Use(set)
	l := ruleList{handler: c.Handler}
	l.refresh()
	own, other := &snapshot{Rates: map[string]rates{"gone": {3}}}, &snapshot{
		Rates: map[string]rates{"gone": {4}},
	}
	s := merge(&l, own, []*snapshot{other}, map[string]uint64{"r299": 5, "gone": 9, "edge/user": 1})
	first := []string{"gone", "r299", "edge/user", "r0", "r1"}
	for i, name := range first {
		if s.Rules[i].Name != name {
			t.Errorf("place %d: %s, want %s", i, s.Rules[i].Name, name)
		}
	}
	if len(s.Rules) != shownRules || s.MoreRules != 300+1+1-shownRules {
		t.Errorf("%d rules and %d more", len(s.Rules), s.MoreRules)
	}
	if s.Rules[0].Allowed != 7 || s.Rules[0].Mode != "enforce" || s.Rules[2].Kind != kindDomain {
		t.Errorf("%+v", s.Rules[:3])
	}
}
