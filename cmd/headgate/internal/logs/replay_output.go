package logs

import (
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// printReport writes r as text, with prose at most width columns wide if width is not 0.
func printReport(w io.Writer, r *replay.Report, width int) {
	PrintTraffic(w, &r.Traffic, width)
	if r.Requests == 0 {
		return
	}
	fmt.Fprintln(w)
	printLimits(w, r)
	for _, l := range r.Limits {
		printTop(w, l)
	}
}

// PrintTraffic prints what the logs hold.
func PrintTraffic(w io.Writer, r *replay.Traffic, width int) {
	line := func(label, format string, a ...any) {
		command.PrintFolded(w, fmt.Sprintf("%-10s", label), fmt.Sprintf(format, a...), width)
	}
	if r.Requests == 0 {
		line("requests", "none in %s", command.Count(r.Lines, "line"))
	} else {
		from, to := r.Span.From.Format(time.DateTime), r.Span.To.Format(time.DateTime)
		line("requests", "%s from %s by %s",
			command.Thousands(r.Requests), command.Count(r.Keys, "key"), r.By)
		line("span", "%s to %s UTC", from, to)
		line("peak", "%s in the second %s",
			command.Thousands(r.Peak.Requests), r.Peak.At.Format(time.DateTime))
	}
	switch {
	case tooLate(r):
		line("late", "%s of %s (%s) out of order: do not trust these numbers",
			command.Thousands(r.Late), command.Count(r.Requests, "line"),
			command.Percent(float64(r.Late)/float64(r.Requests)))
	case r.Late > 0:
		line("late", "%s out of order; see --reorder", command.Count(r.Late, "line"))
	}
	warning := ""
	if r.Unreadable() != nil {
		warning = ": do not trust these numbers"
	}
	line("skipped", "%s%s", command.Count(r.Skipped, "line"), warning)
	for _, k := range r.SkippedReasons {
		line("", "%s %s, first %s:%d", command.Thousands(k.Lines), command.Printable(k.Reason),
			command.Printable(k.File), k.FirstLine)
	}
	if r.Proxy != "" {
		line("warning", "the log also holds X-Forwarded-For: if %s is a proxy, count its clients "+
			"by --by header:X-Forwarded-For", command.Printable(r.Proxy))
	}
}

// tooLate reports whether more than 1% of the requests were decided at a wrong time, so that
// the report means nothing.
func tooLate(r *replay.Traffic) bool { return r.Late > 0 && 100*r.Late > r.Requests }

// lateError returns an error if r means nothing, which says what would help.
func lateError(r *replay.Traffic, reorder time.Duration) error {
	if !tooLate(r) {
		return nil
	}
	late := "out of order"
	if reorder > 0 {
		late = "more than " + command.Short(reorder) + " out of order"
	}
	return fmt.Errorf("%s of %s arrived %s, so their timing is wrong: "+
		"do not trust these numbers; give each file by name, or increase --reorder; "+
		"of a log with its newest line first, type tac FILE | headgate replay -",
		command.Thousands(r.Late), command.Count(r.Requests, "line"), late)
}

// printLimits prints a table of the limits.
func printLimits(w io.Writer, r *replay.Report) {
	name := len("limit")
	for _, l := range r.Limits {
		name = max(name, len(l.Limit.String()))
	}
	fmt.Fprintf(w, "%-*s%12s%12s%9s%13s\n",
		name, "limit", "allowed", "denied", "denied %", "keys denied")
	for _, l := range r.Limits {
		fmt.Fprintf(w, "%-*s%12s%12s%9s%13s\n", name, l.Limit,
			command.Thousands(l.Allowed), command.Thousands(l.Denied),
			command.Percent(denied(l)), command.Thousands(l.DeniedKeys))
	}
}

func denied(l replay.Result) float64 { return float64(l.Denied) / float64(l.Requests) }

// printTop prints the keys that a limit denied most. The key comes last, so that a long one
// moves no column.
func printTop(w io.Writer, l replay.Result) {
	if len(l.Top) == 0 {
		return
	}
	fmt.Fprintf(w, "\ntop denied keys under %s\n", l.Limit)
	deniedWidth, requestsWidth := len("denied"), len("requests")
	for _, t := range l.Top {
		deniedWidth = max(deniedWidth, len(command.Thousands(t.Denied)))
		requestsWidth = max(requestsWidth, len(command.Thousands(t.Requests)))
	}
	const row = "  %*s  %6s  %*s  %s\n"
	fmt.Fprintf(w, row, deniedWidth, "denied", "share", requestsWidth, "requests", "key")
	for _, t := range l.Top {
		fmt.Fprintf(w, row, deniedWidth, command.Thousands(t.Denied), command.Percent(t.Share),
			requestsWidth, command.Thousands(t.Requests), command.Printable(t.Key))
	}
}
