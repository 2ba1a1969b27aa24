package review

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// randomRevision returns rules of all kinds that a log decides, and overrides of their keys.
func randomRevision(t *testing.T, random *rand.Rand) (r Revision) {
	t.Helper()
	limit := func() headgate.Limit {
		kinds := []string{"", " burst 9", " stepped", " fixed-window", " sliding-window", " sliding-log"}
		text := fmt.Sprintf("%d/%ds%s", 1+random.IntN(6), 1+random.IntN(20), kinds[random.IntN(len(kinds))])
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(text, err)
		}
		return l
	}
	for i, key := range [][]rules.KeyPart{
		{{Source: "ip"}}, {{Source: "ip", Bits: 48}, {Source: "path"}}, {{Source: "host"}, {Source: "method"}}, nil,
	} {
		if random.IntN(4) == 0 {
			continue
		}
		rule := rules.Rule{Name: fmt.Sprintf("r%d", i), Key: key, Limits: []headgate.Limit{limit()}}
		if random.IntN(2) == 0 {
			rule.Limits = append(rule.Limits, limit())
		}
		rule.Match.Path = []string{"", "/a", "/a/*", "re:^/[ab]"}[random.IntN(4)]
		rule.Mode = []rules.Mode{rules.Enforce, rules.Enforce, rules.Shadow, rules.Off}[random.IntN(4)]
		rule.Cost.Fixed = int64(random.IntN(3))
		r.Rules = append(r.Rules, rule)
		if i == 0 {
			r.Overrides = []rules.Override{
				{Rule: "r0", Key: "ip:192.0.2.1", Ban: true},
				{Rule: "r0", Key: "ip:2001:*", Limits: rules.Named("r0", []headgate.Limit{limit()})},
			}
		}
	}
	return r
}

// A review counts what a server with the new rules denies that one with the old rules does not, of
// the same requests at the same times.
func TestReviewDecidesAsServe(t *testing.T) { //nolint:gocognit // one log after the other
	more := 0
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			revisions := [2]Revision{randomRevision(t, random), randomRevision(t, random)}
			var engines [2]*rules.Engine
			for i, r := range revisions {
				table := overrides.NewMemory()
				table.UseFile(r.Overrides)
				set, err := rules.NewSet(r.Rules)
				if err != nil {
					t.Fatal(err)
				}
				engines[i] = rules.New(headgate.NewMemory(), nil, rules.Options{Overrides: table})
				engines[i].Use(set)
			}
			want := map[string]int64{} // by rule and client
			var log strings.Builder
			clients := map[string]bool{}
			for range 400 {
				time.Sleep(time.Duration(random.IntN(1_000_000)) * time.Microsecond)
				addr := []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"}[random.IntN(5)]
				path := []string{"/a", "/a/", "/a/b%20c", "/b", "//a/../b", "/c"}[random.IntN(6)]
				q := rules.Request{
					Method: []string{"GET", "POST"}[random.IntN(2)], Host: []string{"x.example", "y.example:80"}[random.IntN(2)],
					Path: rules.TargetPath(path), Client: netip.MustParseAddr(addr),
				}
				fmt.Fprintf(&log, `{"time":%q,"remote_addr":%q,"method":%q,"host":%q,"uri":%q}`+"\n",
					time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), addr, q.Method, q.Host, path+"?q=1")
				var denied [2]string
				for i, e := range engines {
					v, err := e.Match(&q).Decide(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if !v.Allowed {
						denied[i] = v.Rule
					}
				}
				client := addr
				if q.Client.Is6() {
					client = netip.PrefixFrom(q.Client, 64).Masked().String()
				}
				clients[client] = true
				if denied[0] == "" && denied[1] != "" {
					want[denied[1]+" "+client]++
				}
			}
			r, err := Compare(t.Context(), replay.Reading{Reorder: time.Minute, Top: 100}, revisions[0], revisions[1],
				replay.Log{Name: "log", Reader: strings.NewReader(log.String())})
			if err != nil {
				t.Fatal(err)
			}
			got, denied := map[string]int64{}, map[string]bool{}
			for _, c := range r.Rules {
				for _, top := range c.Top {
					got[c.Rule+" "+top.Client] = top.Requests
					denied[top.Client] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("seed %d: got  %v\nwant %v\nrules %+v", seed, got, want, revisions)
			}
			if r.Requests != 400 || r.Keys != int64(len(clients)) || r.MoreClients != int64(len(denied)) {
				t.Errorf("seed %d: %d requests of %d clients, %d denied", seed, r.Requests, r.Keys, r.MoreClients)
			}
			more += len(denied)
		})
	}
	if more < 15 {
		t.Errorf("only %d clients were denied more: the test shows nothing", more)
	}
}

// The answer to a small log is known: the rule, the clients and the first time.
func TestReviewOfAKnownLog(t *testing.T) {
	revision := func(n int64) Revision {
		return Revision{Rules: []rules.Rule{{
			Name: "login", Key: []rules.KeyPart{{Source: "ip"}}, Limits: []headgate.Limit{headgate.PerMinute(n)},
		}}}
	}
	const log = `192.0.2.1 - - [22/Nov/2026:09:14:00 +0000] "GET / HTTP/1.1" 200 1
192.0.2.2 - - [22/Nov/2026:09:14:01 +0000] "GET / HTTP/1.1" 200 1
192.0.2.2 - - [22/Nov/2026:09:14:02 +0000] "GET / HTTP/1.1" 200 1
- - - [22/Nov/2026:09:14:02 +0000] "GET / HTTP/1.1" 200 1
name.example - - [22/Nov/2026:09:14:02 +0000] "GET / HTTP/1.1" 200 1
192.0.2.3 - - [22/Nov/2026:09:14:02 +0000] "-" 400 1
192.0.2.2 - - [22/Nov/2026:09:14:03 +0000] "GET / HTTP/1.1" 200 1
`
	compare := func(before, after int64) *replay.Review {
		r, err := Compare(t.Context(), replay.Reading{Top: 5}, revision(before), revision(after), replay.Log{Name: "log", Reader: strings.NewReader(log)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := compare(9, 1)
	at := time.Date(2026, 11, 22, 9, 14, 2, 0, time.UTC)
	if len(r.Rules) != 1 || r.MoreClients != 1 || r.Keys != 2 || r.Skipped != 3 {
		t.Fatalf("got %+v", r)
	}
	d := r.Rules[0]
	if d.Requests != 2 || d.Clients != 1 || !d.First.Equal(at) || !slices.Equal(d.Top, []replay.ClientDenial{{Client: "192.0.2.2", Requests: 2}}) {
		t.Errorf("got %+v", d)
	}
	if r = compare(2, 2); len(r.Rules) != 0 || r.MoreClients != 0 {
		t.Errorf("of no change: %+v", r)
	}
	if r = compare(1, 2); len(r.Rules) != 0 || r.MoreClients != 0 {
		t.Errorf("of a larger limit: %+v", r)
	}
}
