package console

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// run runs c until the test ends, and asks for the others as a table of overrides does.
func (c *console) run() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	go c.Run(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for c.fleet != nil && ctx.Err() == nil {
			p := c.fleet.client.Pipeline()
			after := c.Ask(ctx, p)
			_, _ = p.Exec(ctx)
			after()
			select {
			case <-ctx.Done():
			case <-time.After(overrides.Interval):
			}
		}
	})
	synctest.Wait()
	return func() { cancel(); <-c.ended; asking.Wait() }
}

func (c *console) look() *viewer {
	c.t.Helper()
	v, err := c.join(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// A viewer first gets the history with what was decided before, then the state each second and
// each step once, without a gap and without counting anything twice.
func TestAViewerSeesEveryDecisionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, nil)
		defer c.run()()
		want := map[string]counts{}
		work := func(n int) {
			for i := range n {
				key := fmt.Sprint("ip:", i%7)
				c.decide(0, key, rules.Allowed)
				c.decide(0, key, rules.Denied)
				c.decide(1, key, rules.ShadowDenied)
				c.ask("u")
			}
			for name, more := range map[string]counts{
				"api": {uint64(n), uint64(n)}, "trial": {uint64(n), 0, uint64(n)}, // it is allowed, too
			} {
				sum := want[name]
				more.addTo(&sum)
				want[name] = sum
			}
		}
		for range 40 { // of 1.3 s, so that decisions are at all places of a step
			work(3)
			time.Sleep(1300 * time.Millisecond)
		}
		v, s := c.look(), &seen{}
		s.read(t, v)
		if fmt.Sprint(s.kinds) != "[history state]" {
			t.Fatalf("at first: %v", s.kinds)
		}
		for range 40 {
			work(2)
			time.Sleep(1300 * time.Millisecond)
			s.read(t, v)
		}
		time.Sleep(10 * time.Second)
		s.read(t, v)
		for name, n := range want {
			if got := s.total(name); got != n {
				t.Errorf("%s: %v, want %v", name, got, n)
			}
		}
		if got := s.total("edge/user"); got.decisions() != 200 || got[allowed] < 2 {
			t.Errorf("edge/user: %v, want 200 hits", got)
		}
		for i, step := range s.steps[1:] {
			if step.At != s.steps[i].At+5 {
				t.Fatalf("the step %d follows %d", step.At, s.steps[i].At)
			}
		}
		if end := s.past.Steps[steps-1].At + 5; s.steps[0].At != end {
			t.Errorf("the history ends at %d, and the first step is %d", end, s.steps[0].At)
		}
	})
}

// The state has rates of the last seconds, which are the same for a rule and its only key, rules without traffic, and the keys denied most.
func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, nil)
		defer c.run()()
		v, s := c.look(), &seen{}
		time.Sleep(1500 * time.Millisecond) // between two readings
		for i := range 30 {
			c.decide(0, "ip:<b>", rules.Denied)
			c.decide(0, fmt.Sprint("ip:", i), rules.Denied)
			c.decide(0, "ip:1", rules.Allowed)
			c.ask("u")
		}
		time.Sleep(time.Second)
		s.read(t, v)
		api := s.rule(t, "api")
		if api.Allowed != 15 || api.Denied != 30 || api.Mode != "enforce" || api.Kind != "rule" {
			t.Errorf("api: %+v", api)
		}
		if len(api.DeniedKeys) != 20 || api.MoreKeys != 11 || api.DeniedKeys[0].Key != "ip:<b>" || api.DeniedKeys[0].Denied != 30 {
			t.Errorf("the keys denied most: %+v", api.DeniedKeys)
		}
		if last := api.DeniedKeys[0].Last; time.Since(time.UnixMilli(last)) > 3*time.Second {
			t.Errorf("last denied at %d", last)
		}
		if r := s.rule(t, "trial"); r.Mode != "shadow" || r.DeniedKeys == nil {
			t.Errorf("trial: %+v", r)
		}
		if r := s.rule(t, "edge/user"); r.Kind != "domain" || r.Allowed != 1 || r.Denied != 14 || r.DeniedKeys[0].Rate != r.Denied ||
			len(r.DeniedKeys) != 1 || r.DeniedKeys[0].Key != "user=u" || r.DeniedKeys[0].Denied != 28 {
			t.Errorf("edge/user: %+v", r)
		}
		if s.state.Rules[0].Name != "api" {
			t.Errorf("the first rule is %s; want that with most decisions", s.state.Rules[0].Name)
		}
		i := s.state.Instances
		if len(i) != 1 || !i[0].Self || i[0].Store != "memory" || i[0].Rate != 60 || i[0].P50 != nil {
			t.Errorf("instances: %+v", i)
		}
		if s.state.Store.Kind != "memory" || s.state.Store.State != "up" {
			t.Errorf("store: %+v", s.state.Store)
		}
	})
}

// One encoding serves all viewers. There are at most so many, and those that do not read are
// dropped; the others notice nothing.
func TestViewersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, nil)
		stop := c.run()
		viewers := make([]*viewer, 100)
		for i := range viewers {
			viewers[i] = c.look()
		}
		if _, err := c.join(t.Context()); err == nil {
			t.Fatal("there is a viewer beyond the bound")
		}
		reader := viewers[0]
		if a, b := <-reader.events, <-viewers[1].events; &a[0] != &b[0] {
			t.Error("the history was encoded for each viewer")
		}
		before := c.states.Load()
		var s seen
		for range 2 * viewerQueue {
			time.Sleep(time.Second)
			s.read(t, reader)
		}
		if n := c.states.Load() - before; n > 2*viewerQueue {
			t.Errorf("%d states were made in %d s for %d viewers", n, 2*viewerQueue, len(viewers))
		}
		for i, v := range viewers[1:] {
			n := 0
			for range v.events { // ends, because it is closed
				n++
			}
			if n != viewerQueue {
				t.Fatalf("viewer %d was sent %d events before it was dropped", i+1, n)
			}
			c.leave(v) // as its handler does
		}
		c.look()
		stop()
		s.read(t, reader)
		if _, err := c.join(t.Context()); err == nil {
			t.Error("there is a place for a viewer after the end")
		}
		c.leave(reader) // does not block
	})
}

// A machine that was suspended sends the history again instead of hundreds of steps.
func TestSuspended(t *testing.T) {
	c := newConsole(t, nil)
	now := time.Unix(1_800_000_000, 0)
	r := &runner{
		handler: c.Handler, id: "a", rules: ruleList{handler: c.Handler},
		counters: newCounterReader(c.options.Metrics, c.options.Statistics, now),
		viewers:  map[*viewer]struct{}{},
	}
	v := &viewer{events: make(chan []byte, viewerQueue)}
	if !r.join(v, now) {
		t.Fatal("no place")
	}
	c.decide(0, "k", rules.Denied)
	r.tick(now.Add(time.Second))
	r.tick(now.Add(time.Hour))
	var s seen
	s.read(t, v)
	if strings.Join(s.kinds, ", ") != "history, state, "+"state, history, state" {
		t.Errorf("%v", s.kinds)
	}
	if end := s.past.Steps[steps-1].At + 5; end < now.Add(time.Hour-10*time.Second).Unix() {
		t.Errorf("the history ends at %d", end)
	}
}

// The last viewer may be dropped by any event: of two steps that are due, by a history, by a state.
func TestTheLastViewerIsDropped(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, left := range []int{0, 1, 2} { // events that the viewer has room for
		for _, after := range []time.Duration{time.Second, 2 * stepTime, time.Hour} {
			c := newConsole(t, nil)
			r := &runner{
				handler: c.Handler, id: "a", rules: ruleList{handler: c.Handler},
				counters: newCounterReader(c.options.Metrics, c.options.Statistics, now),
				viewers:  map[*viewer]struct{}{},
			}
			v := &viewer{events: make(chan []byte, viewerQueue)}
			if !r.join(v, now) {
				t.Fatal("no place")
			}
			for len(v.events) < viewerQueue-left {
				v.events <- nil
			}
			in := incoming{histories: map[string]past{"b": {}}}
			r.receive(in, now.Add(after))
			r.tick(now.Add(after))
			r.tick(now.Add(2 * after))
			r.tick(now.Add(3 * after))
			if len(r.viewers) != 0 || r.common != nil {
				t.Errorf("room for %d, after %v: %d viewers", left, after, len(r.viewers))
			}
		}
	}
}
