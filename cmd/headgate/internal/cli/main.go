// Package cli is the command line of headgate.
package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/logs"
)

const rootHelp = `Headgate is a rate limiter. Serve limits to other programs, test limits on
access logs, decide requests from scripts, and limit the rate of pipes and commands.

A limit is written as count/period, with an optional burst and algorithm:
  100/m    10/s burst 50    1000/d fixed-window    60/m sliding-log
headgate help limits lists the forms.

The store is named by --store or by the environment variable HEADGATE_STORE. The variable
keeps a password out of the list of processes.

Exit codes: 0 allowed, 1 denied, 2 usage error, 3 failed (a file cannot be read or
has invalid rules, a store is unavailable), 130 interrupted, 143 terminated. demo and serve
exit with 0 if they are interrupted or terminated.`

// Main runs the command line of this process, and ends the process.
func Main() { command.Main(arguments(os.Args), newRoot) }

// Command returns the command with all verbs, for its manual.
func Command() *cobra.Command { return newRoot(nil) }

// newRoot makes the command for the command line args.
func newRoot(args []string) *cobra.Command {
	return command.New(&cobra.Command{
		Use:   "headgate",
		Short: "A rate limiter: a server, tools for scripts and pipes, and tests of limits",
		Long:  rootHelp,
		Example: `  headgate demo
  headgate serve --config rules.yaml
  headgate size access.log
  headgate replay --limit 60/m access.log
  headgate check --limit 10/s --key user:42 --store redis://localhost:6379
  seq 1 20 | headgate pipe --limit 5/s`,
	}, args, newServe(), newDemo(), newReplay(args), logs.NewSize(args), newCheck(), newPeek(),
		newReset(), newKeys(), newPipe(), newExec())
}

// arguments returns the command line. A program named ratelimit takes the place of
// envoyproxy/ratelimit: it serves, and reads the environment variables of that.
func arguments(args []string) []string {
	if filepath.Base(args[0]) == "ratelimit" {
		return append([]string{"serve", "--envoy-env"}, args[1:]...)
	}
	return args[1:]
}
