package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate"
)

// What the command exits with.
const (
	exitFine        = 0
	exitNo          = 1
	exitUsage       = 2
	exitFailed      = 3
	exitInterrupted = 130 // as shells say it: 128 and the number of SIGINT
	exitTerminated  = 143 // of SIGTERM
)

// errNo is the answer "no", which has been printed already.
var errNo = errors.New("denied")

// signalError is that the process was sent a signal that ends it.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (*signalError) Unwrap() error   { return context.Canceled }

// interruption is that the command was told to end, and what that left undone.
type interruption struct {
	err    error
	undone string
}

func (e *interruption) Error() string { return "interrupted; " + e.undone }
func (e *interruption) Unwrap() error { return e.err }

// usageError is a mistake in how the command was called.
type usageError struct {
	err  error
	verb string // whose help tells more
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError of the verb cmd.
func usagef(cmd *cobra.Command, format string, a ...any) error {
	return &usageError{fmt.Errorf(format, a...), cmd.CommandPath()}
}

// output is the standard output: what fails there is told apart from what fails
// elsewhere, such as on the connection to a store.
type output struct{ io.Writer }

func (o output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

// outputError is an error of writing the standard output.
type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// hadEnough says whether err is that the reader of a pipe went away.
func hadEnough(err error) bool {
	e, ok := errors.AsType[*outputError](err)
	return ok && errors.Is(e, syscall.EPIPE)
}

// exec runs the command line args and returns what to exit with.
func exec(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // verbs get ctx from ExecuteContext
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(output{stdout})
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	if line := errorLine(code, err); line != "" {
		_ = writeUntil(ctx, stderr, []byte("headgate: "+line+"\n"))
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	_, usage := errors.AsType[*usageError](err)
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	unfit, _ := errors.AsType[*unfitError](err)
	switch {
	case err == nil, hadEnough(err):
		return exitFine
	case unfit != nil:
		return unfit.code
	case errors.Is(err, errNo), late:
		return exitNo
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitEnded(context.Cause(ctx))
	case usage, invalid:
		return exitUsage
	}
	return exitFailed
}

// exitEnded is what to exit with when the command was told to end for that reason.
func exitEnded(reason error) int {
	if e, ok := errors.AsType[*signalError](reason); ok && e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// errorLine is what to say about err, in one line, or "".
func errorLine(code int, err error) string {
	told, _ := errors.AsType[*interruption](err)
	switch {
	case code == exitFine, errors.Is(err, errNo):
		return ""
	case told != nil:
		return told.Error()
	case code == exitInterrupted, code == exitTerminated:
		return "interrupted; there is no result"
	}
	line := printable(strings.TrimPrefix(err.Error(), "headgate: "))
	if e, ok := errors.AsType[*usageError](err); ok {
		line += " (see " + e.verb + " --help)"
	}
	return line
}

const rootHelp = `Headgate decides whether a request may go ahead.

A limit is written as count/period, with an optional burst and algorithm:
  100/m    10/s burst 50    1000/d fixed-window    60/m sliding-log

Exit codes: 0 fine, 1 the answer is no, 2 wrong usage, 3 it could not be done
(a file that cannot be read, a store that does not answer), 130 interrupted, 143
terminated.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "headgate",
		Short:   "Decide whether a request may go ahead",
		Long:    rootHelp,
		Version: version(),
		Example: `  headgate demo
  headgate replay --limit 60/m access.log
  headgate check --limit 10/s --key user:42
  seq 1 20 | headgate pipe --limit 5/s`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          noVerb,
	}
	root.SetVersionTemplate("headgate {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDemo(), newReplay(), newCheck(), newPeek(), newReset(), newPipe(), newExec())
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:       "help [VERB]",
		Short:     "Tell how a verb is used",
		ValidArgs: []string{"check", "demo", "exec", "peek", "pipe", "replay", "reset"},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usagef(cmd, "%w", err)
			}
			if len(rest) > 0 {
				return noVerb(about, rest)
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// flagError says in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usagef(cmd, "%w", err)
	}
	want := "true or false"
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		want = "a whole number, such as 10"
		if errors.Is(err, strconv.ErrRange) {
			want = "a number of 64 bits"
		}
	case "duration":
		want = "a time with its unit, such as 90s or 5m"
	}
	return usagef(cmd, "--%s is %q; want %s", e.GetFlag().Name, e.GetValue(), want)
}

// noVerb answers a command line that names no verb, or an unknown one.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef(cmd, "no verb given; want one of check, demo, exec, peek, pipe, replay, reset")
	}
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		return usagef(cmd, "unknown verb %q; did you mean %s?", args[0], strings.Join(like, " or "))
	}
	return usagef(cmd, "unknown verb %q; want one of check, demo, exec, peek, pipe, replay, reset", args[0])
}

// version is the version of this module as it was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
