package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

// The exit codes of the command.
const (
	exitAllowed     = 0
	exitDenied      = 1
	exitUsage       = 2
	exitFailed      = 3
	exitInterrupted = 130 // as shells have it: 128 + SIGINT
	exitTerminated  = 143 // 128 + SIGTERM
)

// errDenied is a denial, which has been printed already.
var errDenied = errors.New("denied")

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (*signalError) Unwrap() error   { return context.Canceled }

// interruption is an error of a command that was interrupted, and what it left undone.
type interruption struct {
	err    error
	undone string
}

func (e *interruption) Error() string { return "interrupted; " + e.undone }
func (e *interruption) Unwrap() error { return e.err }

// usageError is an error in the command line.
type usageError struct {
	err  error
	verb string // whose help to read
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError of the verb cmd.
func usagef(cmd *cobra.Command, format string, a ...any) error {
	return &usageError{fmt.Errorf(format, a...), cmd.CommandPath()}
}

func exitCode(ctx context.Context, err error) int {
	_, usage := errors.AsType[*usageError](err)
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	unfit, _ := errors.AsType[*unfitError](err)
	switch {
	case err == nil, readerClosed(err):
		return exitAllowed
	case unfit != nil:
		return unfit.code
	case errors.Is(err, errDenied), late:
		return exitDenied
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitBySignal(context.Cause(ctx))
	case usage, invalid:
		return exitUsage
	}
	return exitFailed
}

// exitBySignal returns the exit code for the cause of a context that ended.
func exitBySignal(cause error) int {
	if e, ok := errors.AsType[*signalError](cause); ok && e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// errorLine returns what to print for err, or "": one line, or one for each error that err joins.
func errorLine(code int, err error) string {
	interrupted, _ := errors.AsType[*interruption](err)
	switch {
	case code == exitAllowed, errors.Is(err, errDenied):
		return ""
	case interrupted != nil:
		return interrupted.Error()
	case code == exitInterrupted, code == exitTerminated:
		return "interrupted; there is no result"
	}
	var lines []string
	for _, fault := range faults(err) {
		lines = append(lines, printable(strings.TrimPrefix(fault.Error(), "headgate: ")))
	}
	line := strings.Join(lines, "\nheadgate: ")
	if e, ok := errors.AsType[*usageError](err); ok {
		line += " (see " + e.verb + " --help)"
	}
	return line
}

// faults returns the errors that err joins, as those of a rules file, or err itself.
func faults(err error) []error {
	inner := err
	if e, ok := errors.AsType[*usageError](err); ok {
		inner = errors.Unwrap(e.err)
	}
	if joined, ok := inner.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
