//go:build gateways

package gateways

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

var long = flag.Bool("gateways.long", false, "try all outages of Redis, in minutes")

// An outage is what happens to Redis, while a client with 20 requests a day sends 300 a second.
type outage struct {
	fault   string        // hung, killed or a delay of its answers
	timeout time.Duration // of the caller; 0: none
	policy  string        // when_store_fails
	asks    string        // ext_authz or ratelimit, which Envoy asks; acquire, for permits by /v1/
}

// storeTimeout is how long Headgate waits for Redis: four times the default, but in the long list,
// for slow machines.
func storeTimeout() time.Duration {
	if *long {
		return 100 * time.Millisecond
	}
	return 400 * time.Millisecond
}

const outageRules = `when_store_fails: %s
store_timeout: %s
instances: 2
rules:
  - {name: day, key: "header:X-User", limits: 20/d}
  - {name: jobs, match: {path: /jobs}, permits: 20}
domains:
  - domain: edge
    descriptors:
      - {key: user, limit: 20/d}
`

// What a client may use in all, and the share of one of two instances.
const tokens, share = 20, tokens / 2

// A tally is what callers got while Redis was at fault, or after it was back.
type tally struct{ passed, denied, unanswered int }

func (n tally) String() string { return fmt.Sprintf("%d, %d, %d", n.passed, n.denied, n.unanswered) }

func (n tally) all() int { return n.passed + n.denied + n.unanswered }

// Short: one of each fault, policy and way to ask. Long: all of them with all timeouts.
func outages() (all []outage) {
	const ms = time.Millisecond
	faults := []string{"hung", "killed", "5ms", "15ms", "30ms", "150ms"}
	for _, asks := range []string{"ext_authz", "ratelimit", "acquire"} {
		timeouts := []time.Duration{10 * ms, 20 * ms, 50 * ms, 200 * ms, 0}
		if asks == "acquire" {
			timeouts = timeouts[4:] // a caller over HTTP does not say when it will leave
		}
		for _, policy := range []string{"share", "open", "closed"} {
			for _, fault := range faults {
				for _, timeout := range timeouts {
					all = append(all, outage{fault, timeout, policy, asks})
				}
			}
		}
	}
	if *long {
		return all
	}
	return []outage{
		{"hung", 200 * ms, "share", "ratelimit"},
		{"hung", 200 * ms, "open", "ratelimit"},
		{"hung", 200 * ms, "closed", "ext_authz"},
		{"killed", 200 * ms, "share", "ext_authz"},
		{"30ms", 200 * ms, "share", "ratelimit"},
		{"600ms", 200 * ms, "closed", "ratelimit"},
		{"hung", 0, "share", "acquire"},
	}
}

// While Redis hangs, is gone or is late, and when it is back, callers get what when_store_fails
// promises, also if they wait for less time than Headgate waits for Redis.
func TestRedisOutages(t *testing.T) {
	cells := outages()
	tallies := make([][2]tally, len(cells))
	places := make(chan struct{}, 3)
	var wg sync.WaitGroup
	for i, o := range cells {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(o.String(), func(t *testing.T) { tallies[i] = o.run(t) })
		})
	}
	wg.Wait()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	defer w.Flush()
	line := func(cells ...any) { fmt.Fprintf(w, strings.Repeat("| %v\t", len(cells))+"|\n", cells...) }
	line("asked by", "policy", "Redis", "timeout", "passed, denied, unanswered", "when Redis is back")
	line("---", "---", "---", "---:", "---:", "---:")
	for i, o := range cells {
		line(o.asks, o.policy, o.fault, o.timeout, tallies[i][0], tallies[i][1])
	}
}

func (o outage) String() string {
	return fmt.Sprint(o.asks, " ", o.policy, " ", o.fault, " ", o.timeout)
}

// run breaks a Redis for as long as the load lasts, and then goes on with the load.
func (o outage) run(t *testing.T) [2]tally {
	t.Helper()
	redis := redistest.Start(t)
	slow := redistest.StartProxy(t, redis.Addr)
	delay, err := time.ParseDuration(o.fault)
	store := redis.Addr
	if err == nil {
		store = slow.Addr
	}
	ask := o.caller(t, "redis://"+store)
	until(t, "Redis decides", func() bool { return ask("first") == http.StatusOK })
	more := func(sent int) bool { return sent < 300 || *long && sent < 900 }
	var back func()
	switch {
	case delay > 0:
		slow.Delay(delay)
		back = slow.Heal
	case o.fault == "hung":
		signal := func(s syscall.Signal) { _ = syscall.Kill(redis.Pid, s) }
		signal(syscall.SIGSTOP)
		back = func() { signal(syscall.SIGCONT) }
		defer back()
	default:
		redis.Stop()
		_, port, _ := net.SplitHostPort(redis.Addr)
		back = func() { redistest.Start(t, "--port", port) }
	}
	during := send(300, more, func() int { return ask("client") })
	back()
	after := send(300, more, func() int { return ask("client") })
	o.check(t, delay, during, after)
	o.recovers(t, ask)
	return [2]tally{during, after}
}

// check fails if the policy promises something else. Unanswered calls are those that a busy machine
// was too late for, and that Envoy would let pass with its default.
func (o outage) check(t *testing.T, delay time.Duration, during, after tally) {
	t.Helper()
	decides := delay > 0 && delay < storeTimeout() // Redis may be in time
	most := map[string]int{"share": share, "open": during.all(), "closed": 0}[o.policy]
	if decides {
		most += tokens
	}
	all := map[string]int{
		"share": tokens + share, "open": during.all() + after.all(), "closed": tokens,
	}[o.policy]
	if during.passed > most || during.passed+after.passed > all {
		t.Errorf("passed %d and then %d; want at most %d, and %d in all",
			during.passed, after.passed, most, all)
	}
	if o.policy == "open" && !decides && during.denied > 0 {
		t.Errorf("%d denied, though the policy is open", during.denied)
	}
	if o.policy == "share" && during.passed+during.unanswered < share {
		t.Errorf("%d passed; want a share of %d", during.passed, share)
	}
	if during.unanswered == during.all() {
		t.Error("no call was answered")
	}
}

// recovers waits until Redis decides again, and gives what the policy alone does not: all tokens of
// a key, or a denial.
func (o outage) recovers(t *testing.T, ask func(key string) int) {
	t.Helper()
	passed := 0
	until(t, "Redis decides again", func() bool {
		if o.policy == "open" {
			return ask("client") == http.StatusTooManyRequests
		}
		if ask("fresh") == http.StatusOK {
			passed++
		}
		return o.policy == "closed" && passed > 0 || passed > share
	})
}

// send sends requests at a rate a second while there are more, whether or not earlier ones are
// answered, and counts the statuses. At most 100 are under way, so that none waits for long on a
// machine that is too busy for the rate.
func send(rate int, more func(sent int) bool, ask func() int) (got tally) {
	var mu sync.Mutex
	var calls sync.WaitGroup
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	places := make(chan struct{}, 100)
	began := time.Now()
	for sent := 0; more(sent); <-ticks.C {
		for due := int(time.Since(began).Seconds() * float64(rate)); sent < due && more(sent); sent++ {
			places <- struct{}{}
			calls.Go(func() {
				defer func() { <-places }()
				status := ask()
				mu.Lock()
				defer mu.Unlock()
				switch status {
				case http.StatusOK:
					got.passed++
				case http.StatusTooManyRequests, http.StatusServiceUnavailable:
					got.denied++
				default:
					got.unanswered++
				}
			})
		}
	}
	calls.Wait()
	return got
}

// caller starts all that is asked, and returns how to ask for a key.
func (o outage) caller(t *testing.T, store string) func(key string) int {
	t.Helper()
	text := fmt.Sprintf(outageRules, o.policy, storeTimeout())
	if o.asks == "acquire" {
		dir := directory(t)
		write(t, dir, map[string]string{"headgate.yaml": text})
		url := "http://" + startHeadgate(t, dir, "--store", store) + "/v1/acquire"
		client := newClient(t)
		return func(key string) int {
			body := strings.NewReader(`{"rule": "jobs", "key": "user:` + key + `"}`)
			return fetch(t, client, url, body, "")
		}
	}
	s := gateways["Envoy"].openWith(t, o.files(t, text), "--store", store)
	s.client = newClient(t)
	return func(key string) int { return fetch(t, s.client, s.url, nil, key) }
}

// files are those of the page, with the timeout, and without the default of Envoy that lets calls
// pass that were not answered.
func (o outage) files(t *testing.T, rules string) map[string]string {
	t.Helper()
	found := files(t, "envoy.md")
	config := found["envoy.yaml"]
	if o.asks == "ratelimit" {
		config = edit(t, found["envoy-descriptors.yaml"], "timeout: 0.2s", "timeout: 1s")
		config = edit(t, config, "failure_mode_deny: false", "failure_mode_deny: true")
		config = edit(t, config, "remote_address: {}",
			"request_headers: {header_name: x-user, descriptor_key: user}")
	}
	config = edit(t, config, "ServiceUnavailable", "GatewayTimeout")
	found["envoy.yaml"] = edit(t, config, "timeout: 1s", fmt.Sprintf("timeout: %.3fs", o.timeout.Seconds()))
	found["headgate.yaml"] = rules
	return found
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// fetch returns the status of a request, or 0 if there is no answer.
func fetch(t *testing.T, client *http.Client, url string, body io.Reader, user string) int {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("X-User", user)
	r.Header.Set("Prefer", "status")
	w, err := client.Do(r)
	if err != nil {
		if t.Context().Err() == nil {
			t.Error(err)
		}
		return 0
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, w.Body) // only the status counts
	return w.StatusCode
}
