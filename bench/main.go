// Command bench measures Headgate beside its peers, in one process, as a middleware,
// as a gate that callers wait at and through one Redis, and prints one table with ratios.
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
	quick  bool
	only   string
	rounds int
	json   bool
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.quick, "quick", false, "one short round with few keys: shows that everything runs, measures little")
	fs.StringVar(&o.only, "only", "", "measure one part: memory, http, gate or redis")
	fs.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	fs.BoolVar(&o.json, "json", false, "print the rows as JSON")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; want flags only", fs.Arg(0))
	}
	if !slices.Contains([]string{"", memoryStore, httpStore, gateStore, redisStore}, o.only) {
		return o, fmt.Errorf("-only is %q; want memory, http, gate or redis", o.only)
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds is %d; want at least 1", o.rounds)
	}
	return o, nil
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
	p := fullPlan(o.rounds)
	if o.quick {
		p = quickPlan()
	}
	var out Results
	for _, part := range []struct {
		store   string
		measure func(context.Context, io.Writer, *Results) error
	}{{memoryStore, p.memory}, {httpStore, p.http}, {gateStore, p.gate}, {redisStore, p.redis}} {
		if o.only != "" && o.only != part.store {
			continue
		}
		if err := part.measure(ctx, stderr, &out); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(out.Rows())
	}
	return report(stdout, &out, p)
}

// report prints the table and what is to be known about it.
func report(w io.Writer, out *Results, p plan) error {
	if err := writeTable(w, out.Rows()); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nratio: to %s (one hot key in memory, and gates), %s (other memory rows), %s (http), %s (Redis); median of %d rounds, their extremes beside it.\n",
		xTimeRateName, goLimiterName, httprateName, redisRateName, p.rounds)
	fmt.Fprintln(w, "redis us: CPU time of the server for a decision.")
	fmt.Fprintln(w, absent)
	fmt.Fprintln(w)
	writeBudgets(w, out)
	return nil
}
