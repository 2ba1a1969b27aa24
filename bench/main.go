// Command bench measures Headgate beside its peers, in one process, as a middleware,
// as a gate that callers wait at and through one Redis, and prints a table for each with ratios.
//
// Contenders take turns within a round, so that what else the machine does
// hits all alike; a ratio is the median over the rounds of one contender's
// number over another's of the same round, with its extremes. Every workload
// verifies that it touched the keys it claims, and every contender that it
// counted every take: if not, the program ends with exit code 1. No duration
// ever makes it fail.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errUsage says that the flags were wrong and that their parser has said so.
var errUsage = errors.New("wrong usage")

// options are the flags.
type options struct {
	quick      bool
	only       string
	rounds     int
	json       bool
	contenders choice
	workloads  choice
	callers    []int
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.quick, "quick", false, "one short round with few keys: shows that everything runs, measures little")
	fs.StringVar(&o.only, "only", "", "measure one part: "+partNames)
	fs.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	fs.BoolVar(&o.json, "json", false, "print the rows as JSON")
	fs.Func("contenders", "measure those in whose `names` one of these words occurs, and whom ratios are taken against",
		into(&o.contenders, parseChoice))
	fs.Func("workloads", "run those in whose `names` one of these words occurs (gates run all)", into(&o.workloads, parseChoice))
	fs.Func("callers", "ask Redis by these `numbers` of callers at once", into(&o.callers, parseLevels))
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; want flags only", fs.Arg(0))
	}
	if o.only != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.store == o.only }) {
		return o, fmt.Errorf("-only is %q; want %s", o.only, partNames)
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds is %d; want at least 1", o.rounds)
	}
	return o, o.contenders.names(memoryField(), httpField(), gateField(), pacedField(), batchingField())
}

// A part of the program measures one field.
type part struct {
	store   string
	measure func(plan, context.Context, io.Writer, *Results) error
}

// partNames are the parts in words.
const partNames = "memory, http, gate, redis, paced or batching"

// parts are all of them, in the order in which they run.
var parts = []part{
	{memoryStore, plan.memory},
	{httpStore, plan.http},
	{gateStore, plan.gate},
	{redisStore, plan.redis},
	{pacedStore, plan.pace},
	{batchingStore, plan.batching},
}

// plan is what the flags ask for.
func (o options) plan() plan {
	p := fullPlan(o.rounds)
	if o.quick {
		p = quickPlan()
	}
	p.contenders, p.workloads = o.contenders, o.workloads
	if len(o.callers) > 0 {
		p.levels, p.sharers = o.callers, o.callers
	}
	return p
}

// run measures what args ask for and prints it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	p := o.plan()
	var out Results
	for _, part := range parts {
		if o.only != "" && o.only != part.store {
			continue
		}
		if err := part.measure(p, ctx, stderr, &out); err != nil {
			return err
		}
	}
	if len(out.order) == 0 {
		return fmt.Errorf("no workload is called %s", strings.Join(o.workloads, ","))
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(out.Rows())
	}
	return report(stdout, &out, p)
}

// report prints the tables and what is to be known about them.
func report(w io.Writer, out *Results, p plan) error {
	if err := writeTables(w, out.Rows()); err != nil {
		return err
	}
	fmt.Fprintf(w, "ratio: to %s (one hot key in memory, and gates), %s (other memory rows), %s (http), %s (Redis); median of %d rounds, their extremes beside it.\n",
		xTimeRateName, goLimiterName, httprateName, redisRateName, p.rounds)
	fmt.Fprintln(w, "redis us, client us: CPU time of the server, and of this process with its harness, for a decision.")
	fmt.Fprintf(w, "late: part of the arrivals that were answered later than %v after they were due, or not taken because %d others were in flight.\n",
		lateAfter, mostInFlight)
	fmt.Fprintln(w, absent)
	fmt.Fprintln(w)
	writeBudgets(w, out)
	return nil
}
