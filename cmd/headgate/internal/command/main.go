// Package command has what all verbs share: the root command, errors, exit codes and output.
package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Main runs the command line args of this process with the command that root makes of them, and
// ends the process.
func Main(args []string, root func(args []string) *cobra.Command) {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		end(&signalError{<-signals})
		os.Exit(exitBySignal(&signalError{<-signals})) // a second one: at once, whatever hangs
	}()
	os.Exit(Run(ctx, args, root, os.Stdin, os.Stdout, os.Stderr))
}

// Run runs the command line args and returns the exit code.
func Run(
	ctx context.Context, args []string, newRoot func(args []string) *cobra.Command,
	stdin io.Reader, stdout, stderr io.Writer,
) int {
	root := newRoot(args)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(output{stdout})
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := ExitCode(ctx, err)
	if line := errorLine(code, err); line != "" {
		_ = WriteUntil(ctx, stderr, []byte("headgate: "+line+"\n"))
	}
	return code
}

// lastWrite is how long a write may still take when it is interrupted.
const lastWrite = 100 * time.Millisecond

// WriteUntil writes b until ctx ends. A write that hangs then, because nothing reads, is left
// running until the process ends.
func WriteUntil(ctx context.Context, w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.Write(b)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(lastWrite):
		return ctx.Err()
	}
}
