package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

// patienceWithStore is how long a store may take to answer.
const patienceWithStore = 5 * time.Second

// target is what a verb asks, as given by flags.
type target struct {
	limits []string
	key    string
	store  string
}

// question is what check, peek and reset ask.
type question struct {
	target

	cost int64
	json bool
}

func newCheck() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "check --limit TEXT [--key K] [--cost N] [--store URL]",
		Short: "Ask once whether a request may go ahead, and charge it if so",
		Long: `Ask once whether a request may go ahead, and charge it if so. Of several limits,
all must grant it, or none is charged. Exits with 0 if allowed, with 1 if denied.`,
		Example: `  headgate check --limit 10/s --key user:42 --store redis://localhost:6379`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return q.ask(cmd.Context(), cmd) },
	}
	q.flags(cmd)
	cmd.Flags().Int64Var(&q.cost, "cost", 1, "take `N` tokens; 0 only looks, less than 0 gives back")
	return cmd
}

func newPeek() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "peek --limit TEXT [--key K] [--store URL]",
		Short: "Look whether a request would be allowed, and charge nothing",
		Long: `Look whether a request would be allowed, and charge nothing. Exits with 0 if it
would, with 1 if it would be denied.`,
		Example: `  headgate peek --limit 10/s --key user:42 --store redis://localhost:6379`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return q.ask(cmd.Context(), cmd) },
	}
	q.flags(cmd)
	return cmd
}

func newReset() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:     "reset --limit TEXT [--key K] [--store URL]",
		Short:   "Forget what a key has consumed",
		Long:    `Forget what a key has consumed of the limits, which are then as at first sight.`,
		Example: `  headgate reset --limit 10/s --key user:42 --store redis://localhost:6379`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return q.reset(cmd.Context(), cmd) },
	}
	q.flags(cmd)
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q; everything is a flag here", args[0])
	}
	return nil
}

func (q *question) flags(cmd *cobra.Command) {
	q.target.flags(cmd)
	cmd.Flags().BoolVar(&q.json, "json", false, "print the answer for programs")
}

func (t *target) flags(cmd *cobra.Command) {
	limitsFlag(cmd, &t.limits, "ask the limit `TEXT`, such as \"10/s burst 50\"; repeat it to ask\nseveral together")
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&t.key, "key", "default", "ask for the key `K`: who or what is limited")
	flags.StringVar(&t.store, "store", "memory:", "ask the store at `URL`: memory:, which begins anew each time,\nredis://, rediss://, redis+cluster:// or redis+sentinel://")
}

// open reads the limits and opens the store.
func (t *target) open(cmd *cobra.Command) ([]headgate.Limit, *store, error) {
	limits, err := parseLimits(cmd, t.limits)
	if err != nil {
		return nil, nil, err
	}
	if err := eachOnce(cmd, limits); err != nil {
		return nil, nil, err
	}
	s, err := openStore(t.store)
	return limits, s, err
}

// limiter makes what waits for turns.
func (t *target) limiter(cmd *cobra.Command) (*headgate.Limiter, []headgate.Limit, *store, error) {
	limits, s, err := t.open(cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := headgate.NewLimiter(s.Store, limits...)
	if err != nil {
		s.Close()
	}
	return l, limits, s, err
}

// ask takes q.cost from every limit, or only looks if it is 0, and prints the
// decision.
func (q *question) ask(ctx context.Context, cmd *cobra.Command) error {
	limits, s, err := q.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(ctx, patienceWithStore)
	defer stop()
	requests := make([]headgate.Request, len(limits))
	for i, l := range limits {
		requests[i] = headgate.Request{Key: q.key, Limit: l, Cost: q.cost}
	}
	decisions := make([]headgate.Decision, len(limits))
	if err := s.TakeAll(ctx, requests, decisions); err != nil {
		return s.failed(err)
	}
	if err := q.print(cmd.OutOrStdout(), s, decisions); err != nil && !hadEnough(err) {
		return err
	}
	if !headgate.Strictest(decisions).Allowed() {
		return errNo
	}
	return nil
}

func (q *question) print(w io.Writer, s *store, decisions []headgate.Decision) error {
	if q.json {
		return printJSON(w, q.answer(s, decisions))
	}
	out := bufio.NewWriter(w)
	q.printAnswer(out, s, decisions, columns(w))
	return out.Flush()
}

func (q *question) reset(ctx context.Context, cmd *cobra.Command) error {
	limits, s, err := q.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(ctx, patienceWithStore)
	defer stop()
	for _, l := range limits {
		if err := s.Reset(ctx, q.key, l); err != nil {
			return s.failed(err)
		}
	}
	if q.json {
		return printJSON(cmd.OutOrStdout(), resetAnswer{true, q.key, limits, s.name})
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	for _, l := range limits {
		printFolded(out, "reset    ", fmt.Sprintf("%s of %s, store %s", l, printable(q.key), s.describe()), columns(cmd.OutOrStdout()))
	}
	return out.Flush()
}
