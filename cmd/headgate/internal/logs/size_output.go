package logs

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// printSize writes r as text, with prose at most width columns wide if width is not 0. reading are
// the flags by which the logs were read.
func printSize(w io.Writer, r *replay.SizeReport, reading []string, width int) {
	PrintTraffic(w, &r.Traffic, width)
	if r.Requests == 0 {
		return
	}
	printFits(w, "smallest limits that deny at most", r.Periods, width)
	if r.StandOut != nil {
		aside := "the same, without " + standingOut(int64(len(r.StandOut.Keys)))
		printFits(w, aside, restOf(r.Periods), width)
		printFits(w, "smallest bursts, without the keys that stand out", restOf(r.Rates), width)
	} else {
		printFits(w, "smallest bursts that deny at most", r.Rates, width)
	}
	printProposals(w, r, width)
	printStandOut(w, r, width)
	for i, c := range r.Caveats {
		command.PrintFolded(w, head(i, "unknown"), c.Text, width)
	}
	printDecision(w, r, reading, width)
}

// printDecision ends with what to decide, which limit follows, and how to try it.
func printDecision(w io.Writer, r *replay.SizeReport, reading []string, width int) {
	needed, reserve := r.Needed()
	decide, others := "nothing: no key stands out", "the keys need"
	if s := r.StandOut; s != nil {
		decide = "may " + command.Printable(s.Keys[0].Key) + " be denied?"
		if more := len(s.Keys) - 1; more > 0 {
			decide = fmt.Sprintf("may %s and %s be denied?", command.Printable(s.Keys[0].Key),
				command.Count(int64(more), "more key"))
		}
		decide += " --report shows what a key requested"
		others = "the other " + needing(r.Keys-int64(len(s.Keys)))
	}
	try := append([]string{"replay", "--limit", reserve.String()}, reading...)
	for _, f := range r.Files {
		if f.Name == stdinName {
			f.Name = "-"
		}
		try = append(try, f.Name)
	}
	fmt.Fprintln(w)
	command.PrintFolded(w, head(0, "decide"), decide, width)
	limit := fmt.Sprintf("%s is twice the %s that %s", reserve, needed, others)
	command.PrintFolded(w, head(0, "limit"), limit, width)
	command.PrintFolded(w, head(0, "try"), command.Printable(commandLine(try)), width)
}

// head returns the label of a list before its first item, and as much space before the others.
func head(i int, label string) string {
	if i > 0 {
		return strings.Repeat(" ", 12)
	}
	return fmt.Sprintf("%-12s", label)
}

// printFits prints a table of limits: a row for each period or rate, a column for each share.
func printFits(w io.Writer, what string, fits []replay.SmallestLimits, width int) {
	const left, column = 14, 12
	fmt.Fprintln(w)
	command.PrintFolded(w, "", what, width)
	label, short := "period", false
	if fits[0].Rate != "" {
		label = "rate"
	}
	fmt.Fprintf(w, "%-*s", left, label)
	for _, f := range fits[0].Fits {
		fmt.Fprintf(w, "%*s", column, shareOf(f.MaxShare))
	}
	fmt.Fprintln(w)
	for _, fit := range fits {
		label = fit.Period.String()
		if fit.Rate != "" {
			label = fit.Rate
		} else if !fit.Enough {
			label += " *"
			short = true
		}
		fmt.Fprintf(w, "%-*s", left, label)
		for _, f := range fit.Fits {
			fmt.Fprintf(w, "%*s", column, fitText(fit, f))
		}
		fmt.Fprintln(w)
	}
	if short {
		command.PrintFolded(w, "", "* the span is shorter than 10 of these periods", width)
	}
}

// restOf returns fits without the keys that stand out.
func restOf(fits []replay.SmallestLimits) []replay.SmallestLimits {
	fits = slices.Clone(fits)
	for i := range fits {
		fits[i].Fits = fits[i].Rest
	}
	return fits
}

// shareOf formats the share that a limit may deny.
func shareOf(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// fitText is a limit, or at a rate its burst.
func fitText(fit replay.SmallestLimits, f replay.SmallestLimit) string {
	switch {
	case f.Point == nil:
		return "none"
	case fit.Rate != "":
		return "burst " + strconv.FormatInt(f.Point.Size, 10)
	}
	return f.Point.Limit.String()
}

// printProposals prints the proposals and the keys that they deny most.
func printProposals(w io.Writer, r *replay.SizeReport, width int) {
	fmt.Fprintln(w)
	name := len("limit")
	for _, p := range r.Proposals {
		name = max(name, len(p.Limit.String()))
	}
	const row = "%-10s%-*s%12s%10s%13s%s\n"
	fmt.Fprintf(w, row, "proposal", name, "limit", "denied", "denied %", "keys denied",
		rest(r, "of the rest"))
	for _, p := range r.Proposals {
		fmt.Fprintf(w, row, p.Name, name, p.Limit, command.Thousands(p.Denied), percent2(p.Result),
			command.Thousands(p.DeniedKeys), rest(r, command.Thousands(p.RestDenied)))
	}
	printChoice(w, r, width)
	var last headgate.Limit
	for _, p := range r.Proposals {
		if p.Limit != last {
			printTop(w, p.Result)
		}
		last = p.Limit
	}
}

// printChoice says what the proposals are that deny keys that stand out.
func printChoice(w io.Writer, r *replay.SizeReport, width int) {
	if !slices.ContainsFunc(r.Proposals, func(p replay.Proposal) bool { return p.OfRest }) {
		return
	}
	command.PrintFolded(w, "", "balanced denies at most 0.1%, tight at most 1%, of the requests "+
		"of keys that do not stand out", width)
}

// standingOut names n keys: 1 key that stands out, 2 keys that stand out.
func standingOut(n int64) string {
	if n == 1 {
		return "1 key that stands out"
	}
	return command.Count(n, "key") + " that stand out"
}

// rest returns text as a column if there are keys that stand out, and so a rest.
func rest(r *replay.SizeReport, text string) string {
	if r.StandOut == nil {
		return ""
	}
	return fmt.Sprintf("%14s", text)
}

func percent2(r replay.Result) string {
	return strconv.FormatFloat(100*denied(r), 'f', 2, 64) + "%"
}

const maxStandOutShown = 10

// printStandOut prints the keys that stand out.
func printStandOut(w io.Writer, r *replay.SizeReport, width int) {
	fmt.Fprintln(w)
	var lines []string
	if s := r.StandOut; s != nil {
		for _, k := range s.Keys[:min(len(s.Keys), maxStandOutShown)] {
			lines = append(lines, fmt.Sprintf("%s needs %s: %s (%s), %s to %s UTC%s",
				command.Printable(k.Key), k.Need, command.Count(k.Requests, "request"),
				command.Percent(k.Share), k.From.Format(time.DateTime),
				k.To.Format(time.DateTime), deniedBy(r, k)))
		}
		if more := int64(len(s.Keys)) - maxStandOutShown; more > 0 {
			lines = append(lines, command.Count(more, "more key")+", listed by --json")
		}
		lines = append(lines, fmt.Sprintf("the other %s at most %s, which denies %s (%s) from %s",
			needing(r.Keys-int64(len(s.Keys))), s.Rest.Limit,
			command.Count(s.Rest.Denied, "request"), percent2(s.Rest),
			command.Count(s.Rest.DeniedKeys, "key")))
	}
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	for i, line := range lines {
		command.PrintFolded(w, head(i, "stands out"), line, width)
	}
	fmt.Fprintln(w)
}

// deniedBy names the first proposal that denies requests of k.
func deniedBy(r *replay.SizeReport, k replay.StandOutKey) string {
	for i, n := range k.Denied {
		if n > 0 {
			return fmt.Sprintf("; %s denies %s of them", r.Proposals[i].Name,
				command.Percent(float64(n)/float64(k.Requests)))
		}
	}
	return ""
}

func needing(keys int64) string {
	if keys == 1 {
		return "key needs"
	}
	return command.Count(keys, "key") + " need"
}
