package rules

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/usage"
)

// What a rule refunds after the window of its limit has ended is not granted twice: neither the cost of a
// response that does not count, nor an estimate that was not used. Before, it comes back.
func TestRefundsAfterTheWindow(t *testing.T) {
	limits := []headgate.Limit{headgate.FixedWindow(10, time.Minute), headgate.Monthly(1000)}
	for name, c := range map[string]struct {
		rule   Rule
		refund func(*Admission)
	}{
		"outcome": {
			Rule{Name: "a", Limits: limits, Count: Count{Statuses: []int{401}}, Cost: Cost{Fixed: 4}},
			func(a *Admission) { a.Outcome(t.Context(), 200) },
		},
		"response": {
			Rule{Name: "a", Limits: limits, Cost: Cost{ResponseHeader: "X-Used", Estimate: 4}},
			func(a *Admission) { a.Settle(t.Context(), http.Header{"X-Used": {"0"}}) },
		},
		"tokens": {
			Rule{Name: "a", Limits: limits, Cost: Cost{Tokens: &TokenCost{Input: 1, Output: 1, Estimate: 4}}},
			func(a *Admission) { a.SettleUsage(t.Context(), usage.Answer{Failed: true}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, Options{}, c.rule)
				for _, after := range []time.Duration{time.Second, 2 * time.Minute} {
					_, a := begin(t, e, &Request{Path: "/"})
					before := left(t, e, "a", "all")
					time.Sleep(after)
					want := int64(10)
					if after > time.Minute {
						begin(t, e, &Request{Path: "/"})
						want = before
					}
					if c.refund(a); left(t, e, "a", "all") != want {
						t.Errorf("%d remain when settled after %s; want %d", left(t, e, "a", "all"), after, want)
					}
				}
			})
		})
	}
}

// The turn of a held request that another rule denies in the end is given back to its own window.
func TestATurnThatIsGivenBackLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := func(name, paths string, n int64, window time.Duration) Rule {
			return Rule{
				Name: name, MaxWait: 20 * time.Second, Match: Match{Path: "re:^/(" + paths + ")$"},
				Limits: []headgate.Limit{headgate.FixedWindow(n, window)},
			}
		}
		e := newEngine(t, Options{}, held("a", "a|both", 5, 4*time.Second), held("b", "b|both", 1, 10*time.Second))
		for range 5 {
			begin(t, e, &Request{Path: "/a"})
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(8500*time.Millisecond, leave)
		time.AfterFunc(3*time.Second, func() { begin(t, e, &Request{Path: "/b"}) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = e.Match(&Request{Path: "/both"}).Begin(ctx) // a grants it after 4 s, b does not
		}()
		time.Sleep(8*time.Second + 100*time.Millisecond)
		for range 5 {
			begin(t, e, &Request{Path: "/a"})
		}
		<-done
		if n := left(t, e, "a", "all"); n != 0 {
			t.Errorf("%d of 5 remain in a window that has granted 5", n)
		}
	})
}

// A request that was held until its turn names its start, too.
func TestRefundOfAHeldRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{
			Name: "a", Limits: []headgate.Limit{headgate.FixedWindow(10, time.Minute)}, MaxWait: 20 * time.Second,
			Count: Count{Statuses: []int{401}}, Cost: Cost{Fixed: 6},
		})
		time.Sleep(50 * time.Second)
		begin(t, e, &Request{Path: "/"})
		_, held := begin(t, e, &Request{Path: "/"})
		if got := left(t, e, "a", "all"); got != 4 || held == nil {
			t.Fatalf("%d remain in the next window; want 4", got)
		}
		time.Sleep(time.Minute)
		begin(t, e, &Request{Path: "/"})
		if held.Outcome(t.Context(), 200); left(t, e, "a", "all") != 4 {
			t.Errorf("%d remain; want 4", left(t, e, "a", "all"))
		}
	})
}
