package serve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// What a server does while its store fails: the time budget of a decision, and how long it waits
// until it calls the store again.
const (
	budget      = 100 * time.Millisecond
	openTimeout = 300 * time.Millisecond
)

// row is what came of a fault under a policy.
type row struct {
	fault, policy          string
	requests, errors, slow int
	lasted                 time.Duration
	stall, late            time.Duration
	broken, back           time.Duration
	recovered              time.Duration // from back to the last answer without the store
	degraded               int           // answers without the store, as HTTP says
	grants                 [2]int        // of HTTP and gRPC
	degradedGrants, bound  int           // of HTTP
	denied                 int           // of those that are never denied, unless the store fails
	bounded                bool
	firstError             error
}

// sum sums up what was answered.
func (r *row) sum(results []result, lasted time.Duration) {
	r.requests, r.lasted = len(results), lasted
	var without []time.Duration // answers without the store, after it was back
	for _, one := range results {
		r.stall = max(r.stall, one.end-one.start)
		if one.end-one.start > budget+100*time.Millisecond+r.late {
			r.slow++
		}
		if one.err != nil {
			r.errors++
			r.firstError = one.err
		}
		if one.granted && one.kind != wide {
			r.grants[one.kind]++
		}
		if one.granted && one.degraded {
			r.degradedGrants++
		}
		if one.degraded {
			r.degraded++
		}
		if one.kind == wide && !one.granted {
			r.denied++
		}
		if (one.degraded || one.kind == wide && !one.granted) && one.end > r.back {
			without = append(without, one.end-r.back)
		}
	}
	slices.Sort(without)
	for _, at := range without {
		if at > r.recovered+steady {
			break // this machine stood still
		}
		r.recovered = at
	}
}

// steady is for how long the store has to decide all before it counts as recovered. It is longer
// than the time for which it is not called.
const steady = budget + 2*openTimeout

// check fails the test if the service did not do what it promises.
func (r *row) check(t *testing.T, f fault) {
	t.Helper()
	if r.errors > 0 {
		t.Errorf("%d of %d requests failed, the last with: %v", r.errors, r.requests, r.firstError)
	}
	grants := r.grants
	if r.policy == "open" {
		grants = [2]int{r.grants[0] - r.degradedGrants, 0}
	}
	for kind, n := range grants {
		if n > r.bound {
			t.Errorf("%d grants of kind %d; want at most %d", n, kind, r.bound)
		}
	}
	if r.grants[0] == 0 || r.grants[1] == 0 {
		t.Errorf("%v grants", r.grants)
	}
	if f.name != "restarted" && r.degraded == 0 {
		t.Error("no request met the fault")
	}
	if r.policy == "open" && r.denied > 0 {
		t.Errorf("%d requests were denied because the store failed", r.denied)
	}
	// Others use this machine as well, so a few may take longer. Without a budget all would that come
	// while Redis is away, which is a quarter or more. A machine whose timers are late by half the
	// budget is too busy to show it.
	if f.name != "restarted" && r.late < budget/2 && r.slow > r.requests/10 {
		t.Errorf("%d of %d requests took much more than %v, one %v", r.slow, r.requests, budget, r.stall)
	}
	// The clients of Redis retry after pauses of up to half a second, which are random.
	if most := f.recovers + 500*time.Millisecond + 4*r.late; r.recovered > most {
		t.Errorf("recovered after %v; want at most %v", r.recovered, most)
	}
}

// table prints the rows as Markdown.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	line("Redis", "policy", "requests/s", "failed", "longest stall", "timers late by",
		"granted over HTTP", "over gRPC", "bound", "recovered after")
	line("---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	round := func(d time.Duration) string { return max(d, 0).Round(time.Millisecond).String() }
	for _, r := range rows {
		bound := "none"
		if r.bounded {
			bound = strconv.Itoa(r.bound)
		}
		line(r.fault, r.policy, fmt.Sprintf("%.0f", float64(r.requests)/max(r.lasted.Seconds(), 1)),
			strconv.Itoa(r.errors), round(r.stall), round(r.late),
			strconv.Itoa(r.grants[0]), strconv.Itoa(r.grants[1]), bound, round(r.recovered))
	}
	_ = w.Flush()
	return b.String()
}
