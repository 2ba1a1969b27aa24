package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

const operatorToken = "the-operator-of-this-test"

// wideRules is how many rules match each request besides the one that denies.
const wideRules = 9

// consoleRules are the rules of a service with 10,000 clients, where each request is decided by ten
// rules: two thousand requests a second are twenty thousand decisions.
func consoleRules() string {
	var text strings.Builder
	// On a busy machine, Redis may answer late now and then.
	text.WriteString("trust: [127.0.0.1/32]\napi: {tokens: [" + operatorToken + "]}\n" +
		"when_store_fails: open\nrules:\n" +
		"  - {name: clients, key: ip, limits: 30/h}\n")
	for i := range wideRules {
		fmt.Fprintf(&text, "  - {name: wide%d, key: ip, limits: %d000/s}\n", i, i+10)
	}
	return text.String()
}

// bot is the client that sends a fifth of all requests.
const bot = "203.0.113.66"

// visit asks whether a client may go on, as a gateway does.
func (c *client) visit(ctx context.Context, address string) answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/auth", http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set("X-Forwarded-For", address)
	r.Header.Set("X-Forwarded-Method", http.MethodGet)
	r.Header.Set("X-Forwarded-Uri", "/")
	response, err := c.web.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return answer{err: err}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNoContent:
		return answer{granted: true}
	case http.StatusTooManyRequests:
		return answer{}
	}
	return answer{err: fmt.Errorf("status %d", response.StatusCode)}
}

// mixed is the traffic: every fifth request is of the bot, the others are of 10,000 clients.
func mixed(ctx context.Context) asking {
	return func(c *client, n int) (int, answer) {
		address := bot
		if n%5 != 0 {
			address = fmt.Sprintf("10.9.%d.%d", n%10_000/100, n%100)
		}
		return 0, c.visit(ctx, address)
	}
}

// sample is what an instance has decided by its metrics, at some moment between two times.
type sample struct {
	from, to time.Time
	decided  float64
}

var decisions = regexp.MustCompile(
	`(?m)^headgate_decisions_total\{outcome="([a-z_]+)",rule="([^"]+)"\} (\S+)$`)

// scrape asks an instance for its metrics.
func scrape(t *testing.T, one *server) sample {
	t.Helper()
	s := sample{from: time.Now()}
	for _, found := range decisions.FindAllStringSubmatch(get(t, "http://"+one.http+"/metrics"), -1) {
		n, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		s.decided += n
	}
	s.to = time.Now()
	return s
}

// decided adds up what all rules decide in a second.
func (s state) decided() (sum float64) {
	for _, r := range s.Rules {
		sum += r.Allowed + r.Denied + r.Failed // what is denied in shadow is allowed
	}
	return sum
}

// before returns what was decided by the last sample that was taken before a time in milliseconds.
func before(samples []sample, at int64) (decided float64) {
	for _, s := range samples {
		if s.to.UnixMilli() < at {
			decided = s.decided
		}
	}
	return decided
}

// after returns what was decided by the first sample that was taken after a time.
func after(samples []sample, at time.Time) float64 {
	i := slices.IndexFunc(samples, func(s sample) bool { return s.from.After(at) })
	return samples[i].decided
}

// act does what an operator does in the console, again while the store is too late.
func (c *client) act(t *testing.T, path, body string) (id string) {
	t.Helper()
	until(t, "accepted: "+body, func() (done bool) {
		id, done = c.tryToAct(t, path, body)
		return done
	})
	return id
}

func (c *client) tryToAct(t *testing.T, path, body string) (id string, done bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/console/api/"+path,
		bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	response, err := c.web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return "", false
	}
	var act struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(b, &act); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", path, body, response.StatusCode, b)
	}
	return act.ID, true
}

// The numbers of the console are those of Prometheus, for the whole fleet, under load. What an
// operator does at one instance holds at all of them.
func TestConsoleUnderLoad(t *testing.T) {
	redis := redistest.Start(t)
	var servers []*server
	var clients []*client
	for range 2 {
		s := serve(t, consoleRules(), "--store", redis.URL()+redistest.Patient)
		servers, clients = append(servers, s), append(clients, newClient(t, s))
	}
	views := []*viewer{watch(t, clients[0]), watch(t, clients[1])}
	late := &lateness{}
	requests := pick(100, 2000)
	l := start(clients, requests, late, mixed(context.WithoutCancel(t.Context())))
	defer func() {
		for _, r := range l.stop() {
			if r.err != nil {
				t.Errorf("at %v: %v", r.end, r.err)
				break
			}
		}
	}()

	until(t, "both instances are seen from both", func() bool {
		return len(views[0].last().instances()) == 2 && len(views[1].last().instances()) == 2
	})
	t.Run("together", func(t *testing.T) { // returns when both have ended
		t.Run("agree", func(t *testing.T) {
			t.Parallel()
			agree(t, servers, views)
		})
		t.Run("acts", func(t *testing.T) {
			t.Parallel()
			actsHold(t, clients, views)
		})
	})
	t.Logf("%d requests a second of %d decisions each; timers were %v late at most",
		requests, wideRules+1, late.value())
}

// meanOf is how many readings a rate is the mean of.
const meanOf = 5

// agree compares what the console shows with Prometheus. A rate of an instance is the mean of its
// last readings, each of which is of a time between that of its state and when that came. So however
// late the machine is, what it has counted in them lies between two samples.
func agree(t *testing.T, servers []*server, views []*viewer) {
	t.Helper()
	samples := make([][]sample, len(servers))
	look := func() {
		for i, one := range servers {
			samples[i] = append(samples[i], scrape(t, one))
		}
	}
	look()
	began, shown := time.Now().UnixMilli(), make([][]state, len(views))
	until(t, "the console has shown some readings", func() bool {
		time.Sleep(50 * time.Millisecond) // the real servers decide meanwhile
		look()
		for i, v := range views {
			shown[i] = v.readings(began)
		}
		return !slices.ContainsFunc(shown, func(rs []state) bool { return len(means(rs)) < pick(3, 15) })
	})
	look() // after all that is compared
	for place, rs := range shown {
		for _, i := range means(rs) {
			first, last := rs[i-meanOf], rs[i]
			seconds, rate := float64(last.At-first.At)/1000, last.Instances[0].Rate
			counted, slack := rate*seconds, 1+0.05*seconds+0.001*rate*meanOf // rates and times are rounded
			least := before(samples[place], last.At) - after(samples[place], first.came) - slack
			most := after(samples[place], last.came) - before(samples[place], first.At) + slack
			if counted < least || counted > most {
				t.Errorf("instance %d: %.0f decisions in %d ms; Prometheus has %.0f to %.0f",
					place, counted, last.At-first.At, least, most)
			}
		}
		t.Logf("%d readings of instance %d were compared with Prometheus", len(means(rs)), place)
	}
	isFleet(t, shown)
}

// means returns the readings whose rate is the mean since the one that is meanOf before. Where one is
// late, or too soon after a late one, the reading between them may not have been shown.
func means(rs []state) (at []int) {
	inTurn := 0
	for i := range rs {
		inTurn++
		if i > 0 {
			if after := rs[i].At - rs[i-1].At; after <= 800 || after >= 1200 {
				inTurn = 1
			}
		}
		if inTurn > meanOf {
			at = append(at, i)
		}
	}
	return at
}

// isFleet compares what an instance shows of the other with what that one shows of itself, and the
// decisions of all rules with the sum of the instances.
func isFleet(t *testing.T, shown [][]state) {
	t.Helper()
	for place, states := range shown {
		own := map[int64]float64{} // of the other instance
		for _, s := range shown[1-place] {
			own[s.At] = s.Instances[0].Rate
		}
		compared := 0
		for _, s := range states {
			sum := 0.0
			for _, i := range s.Instances {
				sum += i.Rate
			}
			rounded := 0.1 * float64(len(s.Instances)*len(s.Rules))
			if got := s.decided(); math.Abs(got-sum) > rounded {
				t.Errorf("instance %d: the rules decide %.1f a second, the instances %.1f",
					place, got, sum)
			}
			if len(s.Instances) < 2 {
				continue // the machine stood still for so long that the other one counts as gone
			}
			other := s.Instances[1]
			if rate, ok := own[other.At]; ok {
				compared++
				if rate != other.Rate {
					t.Errorf("instance %d shows a rate of %.1f of the other, which shows %.1f",
						place, other.Rate, rate)
				}
			}
		}
		if compared == 0 {
			t.Errorf("no state of instance %d has a reading of the other one", place)
		}
	}
}

// actsHold lets an operator act at the first instance, and looks at both.
func actsHold(t *testing.T, clients []*client, views []*viewer) {
	t.Helper()
	until(t, "the bot is the key that is denied most", func() bool {
		top := views[1].last().rule("clients").DeniedKeys
		return len(top) > 0 && top[0].Key == "ip:"+bot
	})
	const quiet, other = "198.51.100.7", "198.51.100.8" // clients that nobody else is
	asks := func(address string, granted bool) func() bool {
		return func() bool {
			for _, c := range slices.Backward(clients) { // the other one first: it has to be told
				a := c.visit(t.Context(), address)
				if a.err != nil {
					t.Fatal(a.err)
				}
				if a.granted != granted {
					return false
				}
			}
			return true
		}
	}
	holds := func(what, path, body string, met func() bool) (id string) {
		t.Helper()
		began := time.Now()
		id = clients[0].act(t, path, body)
		until(t, what, func() bool {
			time.Sleep(50 * time.Millisecond) // each look may take a token
			return met()
		})
		t.Logf("%-28s holds at both instances after %v", what,
			time.Since(began).Round(time.Millisecond))
		return id
	}
	denied := asks(quiet, false)

	holds("a ban", "acts", `{"act":"ban","rule":"clients","key":"ip:`+quiet+`","for_s":600,"by":"t"}`, denied)
	holds("a ban that is lifted", "acts", `{"act":"lift","rule":"clients","key":"ip:`+quiet+`","by":"t"}`,
		asks(quiet, true))
	id := holds("a second ban", "acts", `{"act":"ban","rule":"clients","key":"ip:`+quiet+`","by":"t"}`, denied)
	holds("a ban that is undone", "acts/"+id+"/undo", `{"by":"t"}`, asks(quiet, true))

	until(t, "the client has used its burst", asks(other, false))
	holds("a reset", "acts", `{"act":"reset","rule":"clients","key":"ip:`+other+`","by":"t"}`, asks(other, true))
	until(t, "the client has used its burst again", asks(other, false))
	holds("a raise", "acts", `{"act":"raise","rule":"clients","key":"ip:`+other+
		`","limits":["1000/s"],"for_s":600,"by":"t"}`, asks(other, true))

	id = holds("a switch to shadow", "acts", `{"act":"mode","rule":"clients","mode":"shadow","by":"t"}`,
		asks(bot, true))
	until(t, "the console tells of the shadow", func() bool {
		r := views[1].last().rule("clients")
		return r.Mode == "shadow" && r.ShadowDenied > 0 && r.Denied == 0
	})
	holds("a switch that is undone", "acts/"+id+"/undo", `{"by":"t"}`, asks(bot, false))
}
