package rules

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestParseCount(t *testing.T) {
	for text, want := range map[string]Count{
		"401": {Statuses: []int{401}}, "4xx": {Statuses: []int{4}}, "101": {Statuses: []int{101}},
		"599": {Statuses: []int{599}}, "denied": {Denied: true},
	} {
		got, err := ParseCount(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("%q: %+v (%s), %v", text, got, got, err)
		}
	}
	for _, bad := range []string{
		"", "xx", "4", "1xx", "6xx", "4XX", "04xx", "4xxx", "100", "199", "600", "+401", "0401", "all",
	} {
		if c, err := ParseCount(bad); err == nil || !strings.Contains(err.Error(), "; want ") {
			t.Errorf("%q: %+v, %v", bad, c, err)
		}
	}
}

func TestCountRefuses(t *testing.T) {
	denied, failed := Count{Denied: true}, Count{Statuses: []int{401}}
	for _, c := range []struct {
		want string
		rule Rule
	}{
		{`is 401, denied; want statuses, or denied alone`, Rule{
			Limits: per(1), Count: Count{Statuses: []int{401}, Denied: true},
		}},
		{`is 401, which has no effect without limits`, Rule{Permits: 1, Count: failed}},
		{`is denied, which excludes permits and a cost`, Rule{Limits: per(1), Permits: 1, Count: denied}},
		{`is denied, which excludes permits and a cost`, Rule{Limits: per(1), Cost: Cost{Fixed: 2}, Count: denied}},
	} {
		c.rule.Name = "a"
		if err := c.rule.Validate(); err == nil || !strings.Contains(err.Error(), "count: "+c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
	for _, c := range []struct {
		want         string
		count, clear Count
	}{
		{`is 200, which has no effect without statuses in count`, Count{}, Count{Statuses: []int{200}}},
		{`is 200, which has no effect without statuses in count`, denied, Count{Statuses: []int{200}}},
		{`has denied; want statuses`, failed, denied},
		{`is 4xx, which count has, too`, failed, Count{Statuses: []int{4}}},
		{`is 200, 404, which count has, too`, Count{Statuses: []int{4}}, Count{Statuses: []int{200, 404}}},
	} {
		r := Rule{Name: "a", Limits: per(1), Count: c.count, Clear: c.clear}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "clear: "+c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
	for _, c := range []Rule{
		{Limits: per(1), Permits: 1, Cost: Cost{Fixed: 3}, Count: failed},
		{Limits: per(1), Count: Count{Statuses: []int{4}}, Clear: Count{Statuses: []int{2, 302}}},
		{Limits: per(1), Cost: Cost{Fixed: 1}, Count: denied},
	} {
		c.Name = "a"
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Each rule is refunded what it has taken, whatever the mode of the rule.
func TestOutcome(t *testing.T) {
	failed := Count{Statuses: []int{401, 5}}
	e := newEngine(t, Options{},
		Rule{Name: "logins", Limits: per(100), Count: failed, Cost: Cost{RequestHeader: "Cost"}},
		Rule{Name: "trial", Limits: per(100), Count: failed, Mode: Shadow},
		Rule{Name: "late", Limits: per(100), Count: failed, Cost: Cost{ResponseHeader: "Used"}},
		Rule{Name: "each", Limits: per(100)},
	)
	q := &Request{Path: "/", Header: http.Header{"Cost": {"3"}}}
	names := []string{"logins", "trial", "late", "each"}
	remain := []int64{100, 100, 100, 100}
	for _, c := range []struct {
		outcome int // 0: none
		costs   []int64
	}{
		{200, []int64{0, 0, 0, 1}}, {401, []int64{3, 1, 7, 1}}, {403, []int64{0, 0, 0, 1}},
		{502, []int64{3, 1, 7, 1}}, {101, []int64{0, 0, 0, 1}}, {0, []int64{3, 1, 7, 1}},
	} {
		_, a := begin(t, e, q)
		if c.outcome > 0 {
			a.Outcome(t.Context(), c.outcome)
			a.Outcome(t.Context(), 404) // does nothing
		}
		a.Settle(t.Context(), http.Header{"Used": {"7"}})
		a.End(t.Context())
		for i, name := range names {
			remain[i] -= c.costs[i]
			if got := left(t, e, name, "all"); got != remain[i] {
				t.Errorf("%d: %d of %s remain, want %d", c.outcome, got, name, remain[i])
			}
		}
	}
}

// A right login clears the count of its key, under all limits of the rule, and of no other rule.
func TestClear(t *testing.T) {
	failed, right := Count{Statuses: []int{401}}, Count{Statuses: []int{2}}
	e := newEngine(t, Options{},
		Rule{Name: "logins", Limits: append(per(5), headgate.SlidingLog(5, time.Hour)), Count: failed, Clear: right},
		Rule{Name: "trial", Limits: per(5), Count: failed, Clear: right, Mode: Shadow},
		Rule{Name: "all", Limits: per(5), Count: failed},
	)
	for i, outcome := range []int{401, 401, 500, 204, 401, 302} {
		_, a := begin(t, e, &Request{Path: "/"})
		a.Outcome(t.Context(), outcome)
		a.End(t.Context())
		for _, c := range []struct {
			rule string
			left []int64
		}{{"logins", []int64{4, 3, 3, 5, 4, 4}}, {"trial", []int64{4, 3, 3, 5, 4, 4}}, {"all", []int64{4, 3, 3, 3, 2, 2}}} {
			if got := left(t, e, c.rule, "all"); got != c.left[i] {
				t.Errorf("after %d: %d of %s remain, want %d", outcome, got, c.rule, c.left[i])
			}
		}
	}
}

// A client that has left cannot make its request free. One that leaves now does not stop a refund.
func TestOutcomeWithoutClient(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "a", Limits: per(9), Count: Count{Statuses: []int{401}}})
	_, gone := begin(t, e, &Request{Path: "/"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone.Outcome(ctx, 200)
	if got := left(t, e, "a", "all"); got != 8 {
		t.Errorf("%d remain, want 8", got)
	}
}

// Forward authentication never sees a status: what it lets through stays charged.
func TestDecideNeverRefunds(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "a", Limits: per(2), Count: Count{Statuses: []int{401}}})
	for i := range 3 {
		if v := decide(t, e, &Request{Path: "/"}); v.Allowed != (i < 2) {
			t.Errorf("request %d: %+v", i, v)
		}
	}
}

// A request that a fallback let through was not charged, and is not refunded.
func TestUncheckedIsNotRefunded(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "a", Limits: per(9), Count: Count{Statuses: []int{401}}})
	store := e.store
	e.store = open{store}
	_, a := begin(t, e, &Request{Path: "/"})
	e.store = store
	decide(t, e, &Request{Path: "/"})
	a.Outcome(t.Context(), 200)
	if got := left(t, e, "a", "all"); got != 8 {
		t.Errorf("%d remain, want 8", got)
	}
}

// open is a store that fails, with a fallback that allows everything.
type open struct{ headgate.Store }

func (open) Take(_ context.Context, r headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{Limit: r.Limit.Share(0), Remaining: 1}, nil
}
