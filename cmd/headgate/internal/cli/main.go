// Package cli is the command line of headgate: its verbs, flags, output and exit codes.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line of this process, and ends the process.
func Main() {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		end(&signalError{<-signals})
		os.Exit(exitBySignal(&signalError{<-signals})) // a second one: at once, whatever hangs
	}()
	os.Exit(exec(ctx, arguments(os.Args), os.Stdin, os.Stdout, os.Stderr))
}

// Command returns the command with all verbs, for its manual.
func Command() *cobra.Command { return newRoot(nil) }

// exec runs the command line args and returns the exit code.
func exec(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(args) //nolint:contextcheck // verbs get ctx from ExecuteContext
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

// arguments returns the command line. A program named ratelimit takes the place of
// envoyproxy/ratelimit: it serves, and reads the environment variables of that.
func arguments(args []string) []string {
	if filepath.Base(args[0]) == "ratelimit" {
		return append([]string{"serve", "--envoy-env"}, args[1:]...)
	}
	return args[1:]
}
