package logs

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// Main runs the command line of a program that has only the verbs on access logs.
func Main() { command.Main(os.Args[1:], newRoot) }

// newRoot makes the command for the command line args.
func newRoot(args []string) *cobra.Command {
	verb, _ := NewReplay(args)
	return command.New(&cobra.Command{
		Use:   "headgate",
		Short: "Test limits on access logs, and find the limits that they need",
		Long: "Test limits on access logs, and find the limits that they need. These are two " +
			"verbs of headgate, whose other verbs serve and decide.",
		Annotations: map[string]string{command.Others: "; ./cmd/headgate has all verbs and flags"},
	}, args, verb, NewSize(args))
}
