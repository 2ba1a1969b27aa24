package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
		sum += r.Allowed + r.Denied + r.ShadowDenied
	}
	return sum
}

// between returns the least and the most decisions a second between the samples in a span of time.
func between(samples []sample, from, to time.Time) (least, most float64) {
	for i, a := range samples {
		for _, b := range samples[i+1:] {
			length := b.from.Sub(a.to).Seconds()
			if a.from.Before(from) || b.to.After(to) || length < 0.8 {
				continue
			}
			least1 := (b.decided - a.decided) / b.to.Sub(a.from).Seconds()
			most1 := (b.decided - a.decided) / length
			if least == 0 || least1 < least {
				least = least1
			}
			most = max(most, most1)
		}
	}
	return least, most
}

// act does what an operator does in the console.
func (c *client) act(t *testing.T, path, body string) (id string) {
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
	var act struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(b, &act); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", path, body, response.StatusCode, b)
	}
	return act.ID
}

// The numbers of the console are those of Prometheus, for the whole fleet, under load. What an
// operator does at one instance holds at all of them.
func TestConsoleUnderLoad(t *testing.T) {
	redis := redistest.Start(t)
	var servers []*server
	var clients []*client
	for range 2 {
		s := serve(t, consoleRules(), "--store", redis.URL())
		servers, clients = append(servers, s), append(clients, newClient(t, s))
	}
	views := []*viewer{watch(t, clients[0]), watch(t, clients[1])}
	late := &lateness{}
	requests := pick(200, 2000)
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
			agree(t, servers, views, late)
		})
		t.Run("acts", func(t *testing.T) {
			t.Parallel()
			actsHold(t, clients, views)
		})
	})
	t.Logf("%d requests a second of %d decisions each; timers were %v late at most",
		requests, wideRules+1, late.value())
}

// agree compares what the console shows for some seconds with Prometheus. It does so again if they
// differ on a machine that was late: the console then counts for less or more than a second.
func agree(t *testing.T, servers []*server, views []*viewer, late *lateness) {
	t.Helper()
	for try := 1; ; try++ {
		late.reset()
		problems := compare(t, servers, views, pick(6, 20))
		if len(problems) == 0 {
			return
		}
		text := strings.Join(problems, "\n")
		if late.value() < tooLate || try == 5 {
			t.Errorf("on a machine that is late by %v:\n%s", late.value(), text)
			return
		}
		t.Logf("again, because the machine is late by %v:\n%s", late.value(), text)
	}
}

// tooLate is how late a machine is on which the console may count for another time than a second.
const tooLate = 20 * time.Millisecond

// compare returns how the states of some seconds differ from Prometheus. Each of them has to be the
// sum of rates that the instances also have there within the seconds before it came.
func compare(t *testing.T, servers []*server, views []*viewer, seconds int) (problems []string) {
	t.Helper()
	samples := make([][]sample, len(servers))
	began := time.Now()
	asked := began // when all instances were asked last
	for end := began.Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		asked = time.Now()
		for i, one := range servers {
			samples[i] = append(samples[i], scrape(t, one))
		}
		time.Sleep(50 * time.Millisecond) // the real servers decide meanwhile
	}
	for place, v := range views {
		compared := 0
		for _, s := range v.seen() {
			from, to := s.came.Add(-agreement), s.came
			if from.Before(began) || to.After(asked) {
				continue
			}
			least, most, enough := allBetween(samples, from, to)
			if !enough {
				continue // on a busy machine, Prometheus was not asked twice in that time
			}
			compared++
			if got := s.decided(); got < least*0.99 || got > most*1.01 {
				problems = append(problems, fmt.Sprintf(
					"instance %d: %.0f decisions a second; want %.0f to %.0f, as in Prometheus",
					place, got, least, most))
			}
		}
		if compared == 0 {
			problems = append(problems, fmt.Sprintf("no state of instance %d was compared", place))
		}
		t.Logf("%d states of instance %d were compared with Prometheus", compared, place)
	}
	return problems
}

// allBetween adds up the least and the most of all instances: the console adds up what it last
// received from each, which is not of the same second.
func allBetween(samples [][]sample, from, to time.Time) (least, most float64, enough bool) {
	for _, of := range samples {
		l, m := between(of, from, to)
		if m == 0 {
			return 0, 0, false
		}
		least, most = least+l, most+m
	}
	return least, most, true
}

// agreement is how old the numbers of a state may be: the second that they count, the second until
// the next state is sent, and one more for the numbers of another instance.
const agreement = 3500 * time.Millisecond

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
