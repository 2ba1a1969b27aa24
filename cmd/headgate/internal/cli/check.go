package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
)

// storeTimeout is how long a store may take to answer.
const storeTimeout = 5 * time.Second

// query is a call of check, peek or reset.
type query struct {
	target

	cost  int64
	peeks bool
	json  bool
}

func newCheck() *cobra.Command {
	q := new(query)
	cmd := q.command("check", " [--cost N]", q.take)
	cmd.Short = "Decide one request, and charge it if it is allowed"
	cmd.Long = `Decide one request, and charge it if it is allowed. If one of several limits denies
it, nothing is charged to any of them. The exit code is 0 if allowed, 1 if denied.`
	cmd.Flags().Int64Var(&q.cost, "cost", 1, "charge `N` tokens (0: peek, negative: refund)")
	return cmd
}

func newPeek() *cobra.Command {
	q := &query{peeks: true}
	cmd := q.command("peek", " [--cost N]", q.peek)
	cmd.Short = "Show whether a request would be allowed, and charge nothing"
	cmd.Long = `Show whether a request would be allowed, and charge nothing. The exit code is 0 if
it would be allowed, 1 if denied.`
	cmd.Flags().Int64Var(&q.cost, "cost", 1, "ask for `N` tokens")
	return cmd
}

func newReset() *cobra.Command {
	q := new(query)
	cmd := q.command("reset", "", q.reset)
	cmd.Short = "Reset a key to its initial state"
	cmd.Long = `Reset a key to its initial state under the given limits.`
	return cmd
}

// command returns the command of a verb that runs f.
func (q *query) command(
	verb, more string,
	f func(context.Context, *cobra.Command, *storeurl.Store, []headgate.Limit) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " --limit TEXT --store URL [--key K]" + more,
		Example: "  headgate " + verb +
			" --limit 10/s --key user:42 --store redis://localhost:6379",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.peeks && q.cost < 1 {
				return command.Usagef(cmd, "--cost is %d; want 1 or more", q.cost)
			}
			_, limits, s, err := q.open(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			return f(cmd.Context(), cmd, s, limits)
		},
	}
	q.store.kept = true
	q.flags(cmd)
	cmd.Flags().BoolVar(&q.json, "json", false, "print JSON")
	return cmd
}

// take charges q.cost under every limit, and prints the decisions.
func (q *query) take(
	ctx context.Context, cmd *cobra.Command, s *storeurl.Store, limits []headgate.Limit,
) error {
	return q.decide(ctx, cmd, s, q.requests(limits, q.cost))
}

// never is a limit of a count of 1, of which a request of cost 2 is always denied.
var never = headgate.FixedWindow(1, time.Second)

// peek decides as take does, together with a request that is denied: so nothing is charged.
func (q *query) peek(
	ctx context.Context, cmd *cobra.Command, s *storeurl.Store, limits []headgate.Limit,
) error {
	if q.cost == 1 {
		return q.decide(ctx, cmd, s, q.requests(limits, 0))
	}
	return q.decide(ctx, cmd, s, append(q.requests(limits, q.cost),
		headgate.Request{Key: q.key, Limit: never, Cost: 2}))
}

func (q *query) requests(limits []headgate.Limit, cost int64) []headgate.Request {
	requests := make([]headgate.Request, len(limits))
	for i, l := range limits {
		requests[i] = headgate.Request{Key: q.key, Limit: l, Cost: cost}
	}
	return requests
}

// decide decides requests, and prints the decisions under the given limits.
func (q *query) decide(
	ctx context.Context, cmd *cobra.Command, s *storeurl.Store, requests []headgate.Request,
) error {
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	decisions := make([]headgate.Decision, len(requests))
	if err := s.TakeAll(within, requests, decisions); err != nil {
		return storeError(ctx, s, err)
	}
	decisions = decisions[:len(q.limits)]
	err := command.Print(cmd, q.json, q.jsonDecision(s, decisions), func(w io.Writer, width int) {
		q.printDecision(w, s, decisions, width)
	})
	if err != nil {
		return err
	}
	if !headgate.Strictest(decisions).Allowed() {
		return command.ErrDenied
	}
	return nil
}

func (q *query) reset(
	ctx context.Context, cmd *cobra.Command, s *storeurl.Store, limits []headgate.Limit,
) error {
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for _, l := range limits {
		if err := s.Reset(within, q.key, l); err != nil {
			return storeError(ctx, s, err)
		}
	}
	result := struct {
		Reset  bool             `json:"reset"`
		Key    string           `json:"key"`
		Limits []headgate.Limit `json:"limits"`
		Store  string           `json:"store"`
	}{true, q.key, limits, s.Name}
	return command.Print(cmd, q.json, result, func(w io.Writer, width int) {
		for _, l := range limits {
			text := fmt.Sprintf("%s of %s, store %s", l, keyText(q.key), s.Name)
			command.PrintFolded(w, "reset    ", text, width)
		}
	})
}
