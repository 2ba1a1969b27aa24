//go:build unix

package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

const outageRules = `
store: redis://%s` + redistest.Patient + `
when_store_fails: %s
instances: 2
rules:
  - {name: limits, key: ip, match: {path: /limits}, limits: [4/d]}
  - {name: permits, key: ip, match: {path: /permits}, permits: 4}
  - {name: both, key: ip, match: {path: /both}, permits: 4, limits: [4/d]}
  - {name: tokens, key: ip, match: {path: /tokens}, limits: [400/d],
     cost: {tokens: {estimate: 100}}}
  - {name: held, key: ip, match: {path: /held}, limits: [4/d], max_wait: 1ms}
  - {name: queued, key: ip, match: {path: /queued}, permits: 4, max_wait: 1ms}
  - {name: shadow, key: ip, match: {path: /shadow}, permits: 1, limits: [1/d], mode: shadow}
  - {name: api, match: {path: /api}, permits: 4}
`

var outageKinds = []string{"limits", "permits", "both", "tokens", "held", "queued"}

// What requests of each kind of rule get while Redis is stopped, gone or late, by policy: four at once
// under a limit of 4, of which this instance has a half. The client of Redis would wait a minute.
func TestOutage(t *testing.T) {
	usual := fallbackTimeout
	fallbackTimeout = 50 * time.Millisecond
	defer func() { fallbackTimeout = usual }()
	for _, fault := range []string{"stopped", "killed", "late"} {
		for policy, want := range map[string]string{
			"open": "200 200 200 200", "share": "200 200 429 429", "closed": "503 503 503 503",
		} {
			t.Run(fault+" "+policy, func(t *testing.T) { testOutage(t, fault, policy, want) })
		}
	}
}

func testOutage(t *testing.T, fault, policy, want string) {
	t.Helper()
	redis := redistest.Start(t)
	proxy := redistest.StartProxy(t, redis.Addr)
	address := map[string]string{"late": proxy.Addr}[fault]
	text := fmt.Sprintf(outageRules, cmp.Or(address, redis.Addr), policy)
	var log buffer
	s := newTestServer(t, text, &log)
	go s.watchStore(t.Context())
	go s.followOthers(t.Context())
	ban := rules.Override{Rule: "api", Key: "k", Ban: true}
	if err := s.overrides.Put(t.Context(), ban); err != nil {
		t.Fatal(err)
	}
	o := outage{s: s, app: make(chan struct{}, 4), answer: make(chan struct{})}
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		o.app <- struct{}{}
		<-o.answer
	}))
	defer app.Close()
	var err error
	if o.proxy, err = s.proxy(Proxy{Target: app.URL}); err != nil {
		t.Fatal(err)
	}
	o.redisDecides(t)
	var back func()
	switch fault {
	case "stopped":
		signal := func(to syscall.Signal) { _ = syscall.Kill(redis.Pid, to) }
		signal(syscall.SIGSTOP)
		back = func() { signal(syscall.SIGCONT) }
	case "late": // more than the budget, and less than a ping may take
		proxy.Delay(200 * time.Millisecond)
		back = proxy.Heal
	default:
		redis.Stop()
		_, port, _ := strings.Cut(redis.Addr, ":")
		back = func() { redistest.Start(t, "--port", port) }
	}
	for _, kind := range outageKinds {
		before := o.metric(t, "headgate_fallback_decisions_total")
		if got := o.four(t, "192.0.2.1", "/"+kind); got != want {
			t.Errorf("%s: %s; want %s", kind, got, want)
		}
		if n := o.metric(t, "headgate_fallback_decisions_total") - before; n < 4 {
			t.Errorf("%s: the fallback made %v decisions", kind, n)
		}
	}
	if got := o.four(t, "192.0.2.1", "/shadow"); got != "200 200 200 200" {
		t.Errorf("a rule in shadow: %s", got)
	}
	status, permit := o.post(t, "acquire", `{"rule":"api","key":"all"}`)
	if status != "503" != (policy != "closed") {
		t.Errorf("/v1/acquire: %s", status)
	}
	if status, _ := o.post(t, "acquire", `{"rule":"shadow","key":"ip:192.0.2.1"}`); status != "200" {
		t.Errorf("/v1/acquire in shadow: %s", status)
	}
	eventually.Equal(t, "store_up", func() float64 { return o.metric(t, "headgate_store_up") }, 0)
	back()
	o.redisDecides(t)
	eventually.Equal(t, "store_up", func() float64 { return o.metric(t, "headgate_store_up") }, 1)
	const bans = `headgate_overrides{kind="ban"}`
	if fault == "killed" { // and comes back empty
		eventually.Equal(t, bans, func() float64 { return o.metric(t, bans) }, 0)
		if n := strings.Count(log.String(), " 1 bans, 0 modes"); n != 1 {
			t.Errorf("%d lines say that the ban is lost:\n%s", n, log.String())
		}
	} else {
		if n := o.metric(t, bans); n != 1 {
			t.Errorf("%v bans", n)
		}
		const permits = "hg:{permits ip:192.0.2.1}:@permits" // also those that Redis granted too late
		eventually.Equal(t, permits, func() string {
			n, _ := redis.Do(t.Context(), "EXISTS", permits)
			return n
		}, "0")
	}
	if policy == "closed" {
		return
	}
	// The permit of the outage stays in this process.
	id := `{"id":"` + regexp.MustCompile(`p1\.[^"]+`).FindString(permit) + `"}`
	for _, step := range [][3]string{
		{"renew", id, `"renewed":true`}, {"acquire", `{"rule":"api","key":"all"}`, `"in_use":1`},
		{"release", id, `"released":true`}, {"acquire", `{"rule":"api","key":"all"}`, `"in_use":2`},
	} {
		if _, text := o.post(t, step[0], step[1]); !strings.Contains(text, step[2]) {
			t.Errorf("%s after the outage: %s; want %s", step[0], text, step[2])
		}
	}
}

// Clients that hang up while Redis is slow do not turn off the limits of others.
func TestClientsThatHangUp(t *testing.T) {
	usual := fallbackTimeout
	fallbackTimeout = 2 * time.Second
	defer func() { fallbackTimeout = usual }()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	var log buffer
	s := newTestServer(t, fmt.Sprintf(outageRules, proxy.Addr, "open"), &log)
	front := httptest.NewServer(s.http())
	defer front.Close()
	get := func(ctx context.Context) (answer string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+"/v1/take",
			strings.NewReader(`{"rule":"limits","key":"ip:192.0.2.1","cost":4}`))
		if err != nil {
			t.Fatal(err)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return "none"
		}
		defer w.Body.Close()
		body, _ := io.ReadAll(w.Body)
		return string(body)
	}
	if got := get(t.Context()); !strings.Contains(got, `"allowed":true`) {
		t.Fatal(got)
	}
	proxy.Delay(300 * time.Millisecond)
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		get(ctx)
		cancel()
	}
	if got := get(t.Context()); !strings.Contains(got, `"allowed":false`) {
		t.Errorf("after six clients that hung up: %s", got)
	}
}

// outage is a server, and an application behind its proxy that answers when the test says so.
type outage struct {
	s           *server
	proxy       http.Handler
	app, answer chan struct{}
}

// four sends four requests at once, and returns their statuses in order.
func (o *outage) four(t *testing.T, client, path string) string {
	t.Helper()
	statuses := make(chan string, 4)
	for range 4 {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
			w := httptest.NewRecorder()
			r.RemoteAddr = client + ":1"
			o.proxy.ServeHTTP(w, r)
			statuses <- strconv.Itoa(w.Code)
		}()
	}
	var all []string
	reached := 0
	for len(all)+reached < 4 {
		select {
		case status := <-statuses:
			all = append(all, status)
		case <-o.app:
			reached++
		}
	}
	for range reached {
		o.answer <- struct{}{}
		all = append(all, <-statuses)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// redisDecides waits until Redis decides a request of each kind.
func (o *outage) redisDecides(t *testing.T) {
	t.Helper()
	for _, kind := range outageKinds {
		eventually.True(t, "Redis decides "+kind, func() bool {
			before := o.metric(t, "headgate_fallback_decisions_total")
			o.four(t, "192.0.2.2", "/"+kind) // whose share is another one
			return o.metric(t, "headgate_fallback_decisions_total") == before
		})
	}
}

func (o *outage) post(t *testing.T, path, body string) (status, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	o.s.http().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://localhost/v1/"+path, strings.NewReader(body)))
	return strconv.Itoa(w.Code), w.Body.String()
}

func (o *outage) metric(t *testing.T, name string) float64 {
	t.Helper()
	_, text := answerOf(t, o.s.http(), http.MethodGet, "/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
