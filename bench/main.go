// Command bench measures Headgate beside other limiters, in one run, and compares the results
// with the budgets of the design.
//
// Contenders run one after the other within a round, in another order in each. A ratio is taken
// within a round; reports show its median over the rounds, and its extremes. A run fails if a
// contender did not do what it is measured for: each answer is checked.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runOrServe(ctx)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runOrServe(ctx context.Context) error {
	if address := os.Getenv(floorVariable); address != "" {
		return serveFloor(ctx, address)
	}
	if settings := os.Getenv(delayVariable); settings != "" {
		return serveDelay(ctx, settings)
	}
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

var errUsage = errors.New("bench: wrong usage")

// options are the flags.
type options struct {
	quick, strict bool
	rounds        int
	out           string
	parts         selection
	contenders    selection
	callers       []int
}

// selection is the words of a flag. None selects everything.
type selection []string

func (s selection) has(name string) bool {
	return len(s) == 0 ||
		slices.ContainsFunc(s, func(word string) bool { return strings.Contains(name, word) })
}

func (s selection) entries(es []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e Entry) bool { return !s.has(e.Name) })
}

func (o *options) parseCallers(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("callers: %q: want numbers from 1, such as 1,64", word)
		}
		o.callers = append(o.callers, n)
	}
	return nil
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.quick, "quick", false, "run everything briefly, to see that it works")
	fs.BoolVar(&o.strict, "strict", false, "exit with 1 if a budget is missed or not measured")
	fs.IntVar(&o.rounds, "rounds", 7, "run each contender `N` times")
	fs.StringVar(&o.out, "out", "", "write the report to `FILE` as well")
	words := func(to *selection) func(string) error {
		return func(text string) error { *to = strings.Split(text, ","); return nil }
	}
	fs.Func("only", "measure the `PARTS`, separated by commas: "+partNames(), words(&o.parts))
	fs.Func("contenders", "measure those whose name contains one of the `WORDS`",
		words(&o.contenders))
	fs.Func("callers", "ask Redis by these `NUMBERS` of callers", o.parseCallers)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	for _, name := range o.parts {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return o, fmt.Errorf("%w: -only: %q: want %s", errUsage, name, partNames())
		}
	}
	if o.rounds < 1 || fs.NArg() > 0 {
		return o, fmt.Errorf("%w: want -rounds of at least 1, and flags only", errUsage)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	p := o.plan()
	about := setting(ctx, args, p.rounds)
	var results Results
	for _, part := range parts {
		if !o.parts.has(part.name) {
			continue
		}
		if err := part.run(p, ctx, progress{stderr, part.name}, &results); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	for _, c := range p.cells() { // a contender may sit out some workloads
		isMeasured := func(m Cell) bool { return m.Part == c.Part && m.Contender == c.Contender }
		if o.parts.has(c.Part) && p.contenders.has(c.Contender) &&
			!slices.ContainsFunc(results.cells, isMeasured) {
			return fmt.Errorf("%s: %s was not measured", c.Part, c.Contender)
		}
	}
	return publish(o, &results, about, stdout)
}

// publish writes the report, and returns an error if a strict run missed a budget.
func publish(o options, r *Results, about string, stdout io.Writer) error {
	bs := budgets
	if o.quick {
		bs = nil
	}
	var report bytes.Buffer
	writeReport(&report, r, about, bs)
	if o.out != "" {
		err := os.WriteFile(o.out, report.Bytes(), 0o644) //nolint:gosec // not secret
		if err != nil {
			return err
		}
	}
	if _, err := report.WriteTo(stdout); err != nil {
		return err
	}
	if _, missed, rows := compare(r, bs); o.strict && (missed > 0 || len(rows) < len(bs)) {
		return fmt.Errorf("%d budgets were missed, and %d not measured", missed, len(bs)-len(rows))
	}
	return nil
}
