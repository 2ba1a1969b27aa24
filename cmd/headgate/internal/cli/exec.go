package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/internal/await"
)

// The exit codes for a command that cannot be run, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// unfitError is the error of a command that cannot be run.
type unfitError struct {
	error
	code int
}

// ExitCode returns the exit code of headgate.
func (e *unfitError) ExitCode() int { return e.code }

// unfit returns the error for a command that cannot be run.
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
	return &unfitError{fmt.Errorf("%s: %w", name, err), code}
}

type execFlags struct {
	target

	timeout time.Duration
	limited bool // whether timeout was given
}

func newExec() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use: "exec --limit TEXT [--burst N] [--key K] [--store URL] [--timeout D] " +
			"[--] CMD [ARG...]",
		Short: "Run a command when a limit allows it",
		Long: `Wait until the limits allow a command, and run it. Commands that use the same
store, key and limit share the limit, first come, first served. exec reads the limit 5/m as
"5/m sliding-log", which starts at most 5 commands in any minute. Write "5/m sliding-log"
for peek and reset, which read 5/m as a token bucket. With --burst 5, a token bucket starts 5
commands at once, then 5 a minute.

The command replaces headgate. So the command gets the input, the output and the signals, and
the exit code is that of the command. Exit codes if the command is not run: 1 (it could not
start in time), 2 (usage error), 3 (failed, such as a store that is unavailable), 126 (it
cannot be run), 127 (it is not found).`,
		Example: `  headgate exec --limit 5/m --key deploys --store redis://localhost -- ./deploy
  headgate exec --limit 1/h --timeout 0s --store redis://localhost -- mail root`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return command.Usagef(cmd, "no command given; add it after --")
			case args[0] == "":
				return command.Usagef(cmd, "the command is empty; add one after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.limited = cmd.Flags().Changed("timeout")
			return f.run(cmd.Context(), cmd, args)
		},
	}
	f.flags(cmd)
	f.paceFlags(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0,
		"exit with 1 if the command cannot start within `D` (0s: at once)")
	cmd.Flags().Lookup("timeout").DefValue = "" // the default is no timeout
	cmd.Flags().SetInterspersed(false)          // flags after CMD are those of CMD
	return cmd
}

func (f *execFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if f.timeout < 0 {
		return command.Usagef(cmd, "--timeout is %s; want 0s or more", f.timeout)
	}
	l, _, s, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	path, err := osexec.LookPath(args[0])
	if err != nil {
		return unfit(args[0], err) // before it is charged
	}
	if !cmd.Flags().Changed("store") {
		fmt.Fprintf(cmd.ErrOrStderr(), "headgate: warning: no store is given, so this command "+
			"shares its limit with no other; add --store or set %s: %s\n",
			variable("store"), wantStore)
	}
	if err := f.wait(ctx, l, cmd.ErrOrStderr()); err != nil {
		return storeError(ctx, s, err)
	}
	s.Close()
	signal.Reset() // signals that were ignored before stay ignored
	return unfit(args[0], syscall.Exec(path, args, os.Environ()))
}

// wait waits until the limits allow the command. If ctx ends before, nothing stays charged.
func (f *execFlags) wait(ctx context.Context, l *headgate.Limiter, stderr io.Writer) error {
	r, err := f.reserve(ctx, l)
	if err == nil {
		if delay := r.Delay(); delay > time.Second && command.IsTerminal(stderr) {
			fmt.Fprintf(stderr, "headgate: %s may start %s\n", keyText(f.key), after(delay))
		}
		err = awaitStart(ctx, r)
	}
	if err != nil && ctx.Err() != nil {
		err = &command.InterruptedError{Err: ctx.Err(), Undone: "the command was not run"}
	}
	return err
}

// awaitStart waits for the start of r, and cancels r if ctx ends before. Unlike r.Wait it returns
// after the cancel, because the process then ends.
func awaitStart(ctx context.Context, r *headgate.Reservation) error {
	err := await.Sleep(ctx, r.Delay())
	if err != nil {
		_ = r.Cancel(ctx) // after an error it stays charged
	}
	return err
}

func (f *execFlags) reserve(
	ctx context.Context, l *headgate.Limiter,
) (*headgate.Reservation, error) {
	if f.limited && f.timeout == 0 {
		return l.ReserveNow(ctx, f.key, 1)
	}
	if f.limited {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.timeout)
		defer stop()
	}
	return l.Reserve(ctx, f.key, 1)
}
