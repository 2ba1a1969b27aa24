package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/replay"
)

// printReport writes r for a person, in a width of 80 columns unless limits are
// long; in less if width is less, but not 0.
func printReport(w io.Writer, r *replay.Report, width int) {
	printLog(w, r, width)
	if r.Requests == 0 {
		return
	}
	fmt.Fprintln(w)
	printLimits(w, r, width)
	for _, l := range r.Limits {
		printTop(w, l, width)
	}
}

// printLog tells what was in the logs.
func printLog(w io.Writer, r *replay.Report, width int) {
	tell := func(label, format string, a ...any) {
		printFolded(w, fmt.Sprintf("%-10s", label), fmt.Sprintf(format, a...), width)
	}
	if r.Requests == 0 {
		tell("requests", "none in %s", count(r.Lines, "line"))
	} else {
		from, to := r.Span.From.Format(time.DateTime), r.Span.To.Format(time.DateTime)
		tell("requests", "%s from %s by %s", thousands(r.Requests), count(r.Keys, "key"), printable(r.By.String()))
		tell("span", "%s to %s UTC", from, to)
		tell("peak", "%s in the second %s", thousands(r.Peak.Requests), r.Peak.At.Format(time.DateTime))
	}
	if r.Late > 0 {
		tell("late", "%s too late to be put in place; see --reorder", count(r.Late, "line"))
	}
	tell("skipped", "%s", count(r.Skipped, "line"))
	for _, k := range r.SkippedReasons {
		tell("", "%s %s, first %s:%d", thousands(k.Lines), printable(k.Reason), printable(k.File), k.FirstLine)
	}
}

// printFolded writes text after head, in lines of at most width where words allow
// that; in one line if width is 0.
func printFolded(w io.Writer, head, text string, width int) {
	line := head
	for i, word := range strings.Split(text, " ") {
		if i > 0 && width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", len(head)) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// printLimits tells what each limit answered, in a table if there is room.
func printLimits(w io.Writer, r *replay.Report, width int) {
	name := len("limit")
	for _, l := range r.Limits {
		name = max(name, len(l.Limit.String()))
	}
	const numbers = 12 + 12 + 9 + 13
	if width > 0 && name+numbers > width {
		for _, l := range r.Limits {
			fmt.Fprintf(w, "%s\n  allowed      %s\n  denied       %s (%s)\n  keys denied  %s\n", l.Limit, thousands(l.Allowed),
				thousands(l.Denied), percent(denied(l)), thousands(l.DeniedKeys))
		}
		return
	}
	fmt.Fprintf(w, "%-*s%12s%12s%9s%13s\n", name, "limit", "allowed", "denied", "denied %", "keys denied")
	for _, l := range r.Limits {
		fmt.Fprintf(w, "%-*s%12s%12s%9s%13s\n", name, l.Limit, thousands(l.Allowed), thousands(l.Denied),
			percent(denied(l)), thousands(l.DeniedKeys))
	}
}

func denied(l replay.Result) float64 { return float64(l.Denied) / float64(l.Requests) }

// printTop tells which keys a limit denied most. The key comes last, where its
// length does no harm.
func printTop(w io.Writer, l replay.Result, width int) {
	if len(l.Top) == 0 {
		return
	}
	fmt.Fprintf(w, "\ndenied most by %s\n", l.Limit)
	deniedWidth, requestsWidth := len("denied"), len("requests")
	for _, t := range l.Top {
		deniedWidth = max(deniedWidth, len(thousands(t.Denied)))
		requestsWidth = max(requestsWidth, len(thousands(t.Requests)))
	}
	head := fmt.Sprintf("  %*s  %6s  %*s  ", deniedWidth, "denied", "share", requestsWidth, "requests")
	fmt.Fprintln(w, head+"key")
	for _, t := range l.Top {
		key := printable(string(t.Key))
		if width > 0 {
			key = fitting(key, max(width-len(head), 8))
		}
		fmt.Fprintf(w, "  %*s  %6s  %*s  %s\n", deniedWidth, thousands(t.Denied), percent(t.Share), requestsWidth, thousands(t.Requests), key)
	}
}
