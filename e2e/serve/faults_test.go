package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// fault is something that happens to a Redis.
type fault struct {
	name     string
	build    func(t *testing.T) *scene
	lost     int           // how many times all state may be lost
	lasts    time.Duration // in the long form
	recovers time.Duration // within which the store decides again
}

// scene is a Redis, and what happens to it.
type scene struct {
	url string // without the number of a database

	// happen lets the fault happen, waits while it lasts, and returns as soon as Redis is back.
	happen func(lasts func())
}

// faults are those of a Redis. The client of one that is gone for long connects once a second.
func faults() []fault {
	all := []fault{
		{"killed", killed, 1, 3 * time.Second, time.Second},
		{"hung", hung, 0, 3 * time.Second, time.Second},
		{"restarted", restarted, 1, 0, time.Second},
		{"failed over", failedOver, 1, 0, time.Second},
	}
	if *long {
		all = append(all, fault{"killed for 15 s", killed, 1, 15 * time.Second, 1500 * time.Millisecond})
	}
	return all
}

func signal(t *testing.T, s *redistest.Server, sig os.Signal) {
	t.Helper()
	p, err := os.FindProcess(s.Pid)
	if err == nil {
		err = p.Signal(sig)
	}
	if err != nil {
		t.Error(err)
	}
}

// again starts a server that was stopped, with nothing in it.
func again(t *testing.T, s *redistest.Server) {
	_, port, _ := net.SplitHostPort(s.Addr)
	redistest.Start(t, "--port", port)
}

func killed(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{s.URL(), func(lasts func()) {
		s.Stop()
		lasts()
		again(t, s)
	}}
}

func restarted(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{s.URL(), func(func()) {
		s.Stop()
		again(t, s)
	}}
}

func hung(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{s.URL(), func(lasts func()) {
		signal(t, s, syscall.SIGSTOP)
		lasts()
		signal(t, s, syscall.SIGCONT)
	}}
}

func failedOver(t *testing.T) *scene {
	s := redistest.StartSentinel(t, 1, 0)
	at := "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + redistest.SentinelMaster
	return &scene{at, func(func()) {
		s.Primary.Stop()
		_, port, _ := net.SplitHostPort(s.Replicas[0].Addr)
		until(t, "promoted", func() bool { // as all sentinels say
			for _, one := range s.Sentinels {
				named, _ := one.Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", redistest.SentinelMaster)
				if !strings.Contains(named, port) {
					return false
				}
			}
			return true
		})
	}}
}

// The kinds of requests of the load.
const (
	overHTTP = iota // a rule, by /v1/take
	overGRPC        // a descriptor with the same limit
	wide            // a descriptor that never denies, unless the store fails
)

// rules are those of a server that is broken, of so many requests a second.
func rules(policy string, rate int) string {
	limit := fmt.Sprintf("%d/s burst %d", rate/10, rate/20)
	return fmt.Sprintf(`when_store_fails: %s
rules:
  - {name: api, match: {path: /}, key: "header:X-User", limits: %s}
domains:
  - domain: edge
    descriptors:
      - {key: narrow, limit: %s}
      - {key: wide, limit: 1000000000/s}
`, policy, limit, limit)
}

func ask(c *client, n int) (int, answer) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch n / 2 % 4 { // with two servers, each gets all kinds
	case 0:
		return overGRPC, c.limit(ctx, n, "narrow")
	case 1:
		return wide, c.limit(ctx, n, "wide")
	}
	return overHTTP, c.take(ctx, "api")
}

// fleet starts the servers of a policy. For share they are two, which know of each other at once.
func fleet(t *testing.T, rules, policy, store string) []*server {
	t.Helper()
	if policy != "share" {
		return []*server{serve(t, rules, "--store", store)}
	}
	rules = "instances: 2\n" + rules
	return []*server{serve(t, rules, "--store", store), serve(t, rules, "--store", store)}
}

// TestStoreFaults breaks Redis under load by each policy, and prints what came of it.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	faults := faults()
	policies := []string{"closed", "open", "share"}
	rows := make([]row, len(policies)*len(faults))
	places := make(chan struct{}, pick(len(rows), 1))
	var wg sync.WaitGroup
	for i := range rows {
		f, policy := faults[i/len(policies)], policies[i%len(policies)]
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(f.name+" "+policy, func(t *testing.T) { rows[i] = f.run(t, policy) })
		})
	}
	wg.Wait()
	fmt.Print(table(rows)) // go test shows it with -v, or if it is run in this directory
}

// run breaks a Redis under the load of one policy.
func (f fault) run(t *testing.T, policy string) row {
	rate := pick(80, 2000)
	s := f.build(t)
	servers := fleet(t, rules(policy, rate), policy, s.url)
	var clients []*client
	for _, one := range servers {
		clients = append(clients, newClient(t, one))
		until(t, "connected", func() bool {
			_, a := ask(clients[len(clients)-1], 0)
			return a.err == nil
		})
	}
	var late lateness
	l := start(clients, rate, &late, ask)
	l.lasts(t.Context(), pick(300*time.Millisecond, 2*time.Second))
	broken := l.now()
	s.happen(func() { l.lasts(t.Context(), pick(700*time.Millisecond, f.lasts)) })
	back := l.now()
	l.lasts(t.Context(), pick(1500*time.Millisecond, 4*time.Second))
	r := row{fault: f.name, policy: policy, late: late.value(), broken: broken, back: back}
	r.sum(l.stop(), l.now())
	r.bound, r.bounded = f.bound(policy, rate, r.lasted, r.late, servers)
	r.check(t, f)
	return r
}

// bound returns how many tokens of one key may be granted in a time, and whether there is a bound.
// docs/design/fallback.md derives that of share.
func (f fault) bound(
	policy string, rate int, lasted, late time.Duration, servers []*server,
) (int, bool) {
	capacity, refill := float64(rate/20), float64(rate/10)*lasted.Seconds()
	if policy != "share" { // what open grants without the store is not counted here
		return int(float64(f.lost+1)*capacity + refill), policy == "closed"
	}
	whatever := 2*(capacity+refill) + float64(f.lost)*capacity
	if late > 50*time.Millisecond { // calls fail now and then while this machine stands still
		return int(whatever), true
	}
	failures := 1 // also if too few calls failed for the circuit to open
	for _, s := range servers {
		failures = max(failures, strings.Count(s.log.String(), "a circuit to the store\" open=true"))
	}
	both := float64(rate/10) * (2*budget + openTimeout).Seconds() * float64(failures)
	byParts := float64(2*failures+1)*capacity + refill + both
	return int(min(byParts, whatever)), true
}
