package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	osexec "os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

// What a command that cannot be run exits with, as shells say it.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// unfitError is that a command cannot be run, or, where that is told by another process,
// what it exited with.
type unfitError struct {
	code int
	err  error
}

func (e *unfitError) Error() string { return e.err.Error() }
func (e *unfitError) Unwrap() error { return e.err }

// unfit says why the command name cannot be run.
func unfit(name string, err error) error {
	code := exitNotExecutable
	if errors.Is(err, osexec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	if e, ok := errors.AsType[*osexec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &unfitError{code, fmt.Errorf("%s: %w", name, err)}
}

// inTurn is a command to run in its turn.
type inTurn struct {
	target

	timeout time.Duration
	hurried bool // whether timeout was given
}

func newExec() *cobra.Command {
	var f inTurn
	cmd := &cobra.Command{
		Use:   "exec --limit TEXT [--key K] [--store URL] [--timeout D] [--] CMD [ARG...]",
		Short: "Run a command when its turn comes",
		Long: `Wait for the turn of a command, and run it. All who ask the same store for the same
key take turns; with memory:, which begins anew each time, nobody ever waits.

The command takes the place of headgate: it has its input and output, is sent its
signals, and exits with what it exits with. Before that, the exit code is 1 if the turn
does not come in time, 126 if the command cannot be run, 127 if it is not there.`,
		Example: `  headgate exec --limit 5/m --key deploys --store redis://localhost:6379 -- ./deploy
  headgate exec --limit 1/h --timeout 0s --store redis://localhost:6379 -- mail -s disk root`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "no command given; add it after --")
			case args[0] == "":
				return usagef(cmd, "the command is empty; name one after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.hurried = cmd.Flags().Changed("timeout")
			return f.run(cmd.Context(), cmd, args)
		},
	}
	f.flags(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "give up at once if the turn would not come within `D`; 0s: if it\nis not now")
	cmd.Flags().SetInterspersed(false) // what follows CMD is its own
	return cmd
}

func (f *inTurn) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if f.timeout < 0 {
		return usagef(cmd, "--timeout is %s; want 0s or more", f.timeout)
	}
	l, _, s, err := f.limiter(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	path, err := osexec.LookPath(args[0])
	if err != nil {
		return unfit(args[0], err) // before it has cost anything
	}
	if err := f.wait(ctx, l, cmd.ErrOrStderr()); err != nil {
		return s.failed(err)
	}
	s.Close()
	return become(path, args)
}

// wait waits for the turn, and gives it back if ctx ends before.
func (f *inTurn) wait(ctx context.Context, l *headgate.Limiter, stderr io.Writer) error {
	if f.hurried && f.timeout == 0 {
		d, err := l.Allow(ctx, f.key)
		if err == nil && !d.Allowed() {
			err = &headgate.DeadlineError{Limit: d.Limit, Wait: d.RetryAfter}
		}
		return err
	}
	turn, err := f.reserve(ctx, l)
	if err == nil {
		if delay := turn.Delay(); delay > time.Second && isTerminal(stderr) {
			fmt.Fprintf(stderr, "headgate: the turn of %s comes %s\n", printable(f.key), after(delay))
		}
		err = await(ctx, turn)
	}
	if err != nil && ctx.Err() != nil {
		err = &interruption{ctx.Err(), "the command was not run"}
	}
	return err
}

func (f *inTurn) reserve(ctx context.Context, l *headgate.Limiter) (*headgate.Reservation, error) {
	if f.hurried {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.timeout)
		defer stop()
	}
	return l.Reserve(ctx, f.key, 1)
}
