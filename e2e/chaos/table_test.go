package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate"
)

// row is the result of one stack under one fault.
type row struct {
	fault         string
	stack         stack
	perSecond     float64
	grants, bound int64 // of the store
	own, ownBound int64 // of the instances by themselves
	over          int64 // the largest excess of any key, by the store or an instance
	errors, calls int
	instead       int           // of the calls, those that not the store answered
	stall, late   time.Duration // of a caller, and of this machine's timers
	dry           time.Duration // the longest time in which the bucket that all want granted nothing
	recovered     time.Duration
}

// row sums up. Recovered is counted from the heal, or from the fault if Redis mends
// itself, to the first second in which the store answers all.
func (n *tally) row(f fault, s *scene, m moments) row {
	r := row{
		fault: f.name, stack: n.stack, calls: n.calls, errors: n.errors, instead: n.instead, stall: n.stall, late: m.late,
		perSecond: float64(n.calls) / (m.ended - m.begun).Seconds(),
	}
	from := m.healed
	if m.mendsItself {
		from = m.injected
	}
	r.recovered = n.wellAgain(from) - from
	for _, a := range n.accounts {
		if a.isLedger() || a.booked() {
			continue // bounds that are never reached, and grants of who knows whom, would hide the others
		}
		all := slices.Concat(a.grants, a.ownGrants())
		r.grants += tokens(a.grants)
		r.bound += n.bound(a, s)
		r.own += tokens(all) - tokens(a.grants)
		r.ownBound += n.ownBound(a)
		r.over = max(r.over, over(all, func(d time.Duration) int64 { return most(a.limit, d) }))
		if a.key == "bucket-0" {
			r.dry = dry(all, m.ended)
		}
	}
	return r
}

// wellAgain is when the first second begins in which the store answers all, from a moment on.
func (n *tally) wellAgain(from time.Duration) time.Duration {
	slices.Sort(n.trouble)
	for _, at := range n.trouble {
		if at > from+time.Second {
			break
		}
		from = max(from, at)
	}
	return from
}

// dry is the longest time without a grant, up to end.
func dry(grants []grant, end time.Duration) (longest time.Duration) {
	granted := []time.Duration{end}
	for _, g := range grants {
		granted = append(granted, g.end)
	}
	slices.Sort(granted)
	last := time.Duration(0)
	for _, at := range granted {
		longest, last = max(longest, at-last), at
	}
	return longest
}

// heads are those of the table: two of the grants of the store, and three of what instances decided by
// themselves.
var heads = []string{
	"fault", "stack", "load/s", "grants", "bound", "degraded", "grants", "bound", "most over a limit",
	"errors", "longest stall", "timers late by", "without a grant", "recovered after",
}

func (r row) cells() []string {
	ownBound := strconv.FormatInt(r.ownBound, 10)
	if _, bounded := r.stack.own(headgate.Limit{}); !bounded {
		ownBound = "none"
	}
	rounded := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return []string{
		r.fault, r.stack.name, fmt.Sprintf("%.0f", r.perSecond), strconv.FormatInt(r.grants, 10), strconv.FormatInt(r.bound, 10),
		strconv.Itoa(r.instead), strconv.FormatInt(r.own, 10), ownBound, strconv.FormatInt(r.over, 10),
		fmt.Sprintf("%d of %d", r.errors, r.calls), rounded(r.stall), rounded(r.late), rounded(r.dry), rounded(r.recovered),
	}
}

// table prints the rows, as Markdown. It omits limits that no store can exceed.
func table(rows [][]row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	line := func(cells []string) { fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	line(heads)
	rule := slices.Repeat([]string{"---:"}, len(heads))
	rule[0], rule[1] = "---", "---"
	line(rule)
	for _, stacks := range rows {
		for i, r := range stacks {
			cells := r.cells()
			if i > 0 {
				cells[0] = ""
			}
			line(cells)
		}
	}
	_ = w.Flush()
	return b.String()
}
