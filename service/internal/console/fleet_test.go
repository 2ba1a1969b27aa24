package console

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/service/internal/rules"
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
	return sum
}

// Whichever instance is asked, it shows what all of them have decided: the sums of their pages of
// metrics, and the keys that all of them denied.
func TestFleet(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		url := redis.URL() + "?prefix=fleet:"
		all := []*console{
			newConsole(t, opened(t, url)), newConsole(t, opened(t, url)), newConsole(t, opened(t, url)),
		}
		for i, c := range all {
			c.instance = fmt.Sprint("host-", i)
			defer c.run()()
		}
		work := func(seconds int) {
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
		work(47)
		v, s := all[1].look(), &seen{}
		s.read(t, v)
		for range 20 {
			work(2)
			s.read(t, v)
		}
		other, seenByOther := all[2].look(), &seen{}
		for range 10 {
			time.Sleep(time.Second)
			s.read(t, v)
			seenByOther.read(t, other)
		}
		for _, rule := range []string{"api", "trial"} {
			want := counts{}
			for _, c := range all {
				want.add(c.prometheus(rule))
			}
			if got := s.total(rule); got != want {
				t.Errorf("%s: %v, and the pages of metrics have %v", rule, got, want)
			}
			if got := seenByOther.total(rule); got != want {
				t.Errorf("%s, seen by another: %v, want %v", rule, got, want)
			}
		}
		if len(s.state.Instances) != 3 || s.state.Instances[0].Name != "host-1" || s.state.Watching != 2 {
			t.Errorf("%d viewers of %+v", s.state.Watching, s.state.Instances)
		}
		top := s.rule(t, "api").DeniedKeys
		bots := uint64(0)
		for _, c := range all {
			bots += c.prometheus("api")[denied] / 2
		}
		if len(top) != 4 || top[0].Key != "ip:bot" || top[0].Denied != bots {
			t.Errorf("the keys denied most: %+v, want ip:bot with %d", top, bots)
		}
	})
}

// The rates of the fleet are those of the last second.
func TestFleetRates(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := newConsole(t, opened(t, redis.URL())), newConsole(t, opened(t, redis.URL()))
		defer a.run()()
		defer b.run()()
		v, s := a.look(), &seen{}
		time.Sleep(5500 * time.Millisecond)
		for range 3 {
			for range 50 {
				a.decide(0, "k", rules.Allowed)
				b.decide(0, "k", rules.Allowed)
				b.decide(0, "k", rules.Denied)
			}
			time.Sleep(time.Second)
		}
		s.read(t, v)
		if r := s.rule(t, "api"); r.Allowed != 100 || r.Denied != 50 {
			t.Errorf("%+v, want 100 allowed and 50 denied", r)
		}
	})
}

// While nobody looks, an instance only asks whether somebody does, once a second.
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
		c, other := newConsole(t, opened(t, redis.URL())), newConsole(t, opened(t, redis.URL()))
		defer c.run()()
		defer other.run()()
		unwatched := func() {
			t.Helper()
			before, encoded := commands(), c.encoded.Load()+other.encoded.Load()
			time.Sleep(time.Minute)
			synctest.Wait()
			for name, n := range commands() {
				if more := n - before[name]; name == "get" && more > 121 || name != "get" && name != "info" && more > 0 {
					t.Errorf("%d commands %s in a minute", more, name)
				}
			}
			if more := c.encoded.Load() + other.encoded.Load() - encoded; more > 0 {
				t.Errorf("%d texts were encoded", more)
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
		do("DEL", "hg:{@console}:@watched") // which Redis does by its own clock
		time.Sleep(10 * time.Second)
		unwatched()
	})
}
