package command

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
	ExitAllowed     = 0
	ExitDenied      = 1
	ExitUsage       = 2
	ExitFailed      = 3
	ExitInterrupted = 130 // as shells have it: 128 + SIGINT
	ExitTerminated  = 143 // 128 + SIGTERM
)

// ErrDenied is a denial, which has been printed already.
var ErrDenied = errors.New("denied")

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (*signalError) Unwrap() error   { return context.Canceled }

// InterruptedError is an error of a command that was interrupted, and what it left undone.
type InterruptedError struct {
	Err    error
	Undone string
}

func (e *InterruptedError) Error() string { return "interrupted; " + e.Undone }
func (e *InterruptedError) Unwrap() error { return e.Err }

// usageError is an error in the command line.
type usageError struct {
	err  error
	verb string // whose help to read
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef makes a usageError of the verb cmd.
func Usagef(cmd *cobra.Command, format string, a ...any) error {
	return &usageError{fmt.Errorf(format, a...), cmd.CommandPath()}
}

// ExitCode returns the exit code for an error of a verb, whose context is ctx.
func ExitCode(ctx context.Context, err error) int {
	_, usage := errors.AsType[*usageError](err)
	_, invalid := errors.AsType[*headgate.InvalidError](err)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	coded, hasCode := errors.AsType[interface {
		error
		ExitCode() int
	}](err)
	switch {
	case err == nil, ReaderClosed(err):
		return ExitAllowed
	case hasCode:
		return coded.ExitCode()
	case errors.Is(err, ErrDenied), late:
		return ExitDenied
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitBySignal(context.Cause(ctx))
	case usage, invalid:
		return ExitUsage
	}
	return ExitFailed
}

// exitBySignal returns the exit code for the cause of a context that ended.
func exitBySignal(cause error) int {
	if e, ok := errors.AsType[*signalError](cause); ok && e.signal == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupted
}

// errorLine returns what to print for err, or "": one line, or one for each error that err joins.
func errorLine(code int, err error) string {
	interrupted, _ := errors.AsType[*InterruptedError](err)
	switch {
	case code == ExitAllowed, errors.Is(err, ErrDenied):
		return ""
	case interrupted != nil:
		return interrupted.Error()
	case code == ExitInterrupted, code == ExitTerminated:
		return "interrupted; there is no result"
	}
	var lines []string
	for _, fault := range faults(err) {
		lines = append(lines, Printable(strings.TrimPrefix(fault.Error(), "headgate: ")))
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
