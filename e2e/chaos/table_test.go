package chaos

import (
	"fmt"
	"slices"
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
	dry           time.Duration // the longest time in which the bucket that all want granted nothing
	recovered     time.Duration
}

// row sums up. Recovered is counted from the heal, or from the fault if Redis mends
// itself, to the first second in which no caller is told an error.
func (n *tally) row(f fault, s *scene, m moments) row {
	r := row{fault: f.name, calls: n.calls, errors: len(n.errors), stall: n.stall, perSecond: float64(n.calls) / m.ended.Seconds()}
	from := m.healed
	if m.mendsItself {
		from = m.injected
	}
	r.recovered = n.wellAgain(from) - from
	for _, a := range n.accounts {
		if a.isLedger() {
			continue // bounds that nobody comes near would hide the others
		}
		r.grants += int64(len(a.grants))
		r.bound += a.bound(s)
		r.over = max(r.over, a.over(0, m.ended+patience))
		if a.key == "bucket-0" {
			r.dry = a.dry(m.ended)
		}
	}
	return r
}

// wellAgain is when the first second without an error begins, from a moment on.
func (n *tally) wellAgain(from time.Duration) time.Duration {
	slices.Sort(n.errors)
	for _, at := range n.errors {
		if at > from+time.Second {
			break
		}
		from = max(from, at)
	}
	return from
}

// dry is the longest time without a grant, up to end.
func (a *account) dry(end time.Duration) (longest time.Duration) {
	granted := []time.Duration{end}
	for _, g := range a.grants {
		granted = append(granted, g.end)
	}
	slices.Sort(granted)
	last := time.Duration(0)
	for _, at := range granted {
		longest, last = max(longest, at-last), at
	}
	return longest
}

// table prints the rows. It says of limits that refuse somebody alone.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tload/s\tgrants\tbound\tmost over a limit\terrors\tlongest stall\twithout a grant\trecovered after")
	for _, r := range rows {
		if r.calls == 0 {
			continue // not run
		}
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%d of %d\t%v\t%v\t%v\n", r.fault, r.perSecond, r.grants, r.bound, r.over,
			r.errors, r.calls, r.stall.Round(time.Millisecond), r.dry.Round(time.Millisecond), r.recovered.Round(time.Millisecond))
	}
	_ = w.Flush()
	return b.String()
}
