package chaos

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// row is what is told of one fault.
type row struct {
	fault         string
	perSecond     float64
	grants, bound int64
	over          int64 // the most of any key beyond its limit
	errors, calls int
	stall         time.Duration
	recovered     time.Duration
}

// row sums up. Recovered is counted from the heal, or from the fault if Redis mends
// itself, to the last error that was told.
func (n *tally) row(f fault, s *scene, m moments) row {
	r := row{fault: f.name, calls: n.calls, errors: n.errors, stall: n.stall, perSecond: float64(n.calls) / m.ended.Seconds()}
	from := m.healed
	if m.mendsItself {
		from = m.injected
	}
	r.recovered = max(n.lastError-from, 0)
	for _, a := range n.accounts {
		if a.limit.String() == ledger || a.limit.Capacity() >= 100_000 {
			continue // bounds that nobody comes near would hide the others
		}
		r.grants += int64(len(a.grants))
		r.bound += a.bound(s)
		r.over = max(r.over, a.over(0, m.ended+patience))
	}
	return r
}

// table prints the rows. It says of limits that refuse somebody alone.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tload/s\tgrants\tbound\tmost over a limit\terrors\tlongest stall\trecovered after")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%d of %d\t%v\t%v\n", r.fault, r.perSecond, r.grants, r.bound, r.over,
			r.errors, r.calls, r.stall.Round(time.Millisecond), r.recovered.Round(time.Millisecond))
	}
	_ = w.Flush()
	return b.String()
}
