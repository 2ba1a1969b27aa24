package command

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/cmd/headgate/internal/spelling"
)

const limitsHelp = `A limit is written as [NAME=]COUNT/PERIOD [burst CAPACITY] [ALGORITHM]:

  100/m                  100 at once, then 100 a minute: up to 200 in the first minute
  100/m burst 20         20 at once, then 100 a minute
  1.5/s                  3 in 2 s, from a bucket that holds 2
  10/s stepped           10 at once, and 10 more together each second
  1000/d fixed-window    1000 in each day (UTC)
  60/m sliding-window    about 60 in any minute
  5/1h30m sliding-log    never more than 5 in any 90 minutes
  1000/month             1000 in each month (UTC); year works, too, and with tz also day and week
  9/day tz Europe/Rome   9 in each day of a time zone
  9/month anchor 17      9 from each 17th of a month; for a year: anchor 04-06
  api=100/m              a limit with the name api, which keeps its state if its numbers change

ALGORITHM is token-bucket unless given; gcra and leaky-bucket are other names of it. PERIOD is
a unit or whole numbers with units: us, ms, s, m, h, d, w. pipe and exec read COUNT/PERIOD alone
(but not a month or year) as a sliding-log, which never passes more than COUNT in any PERIOD. If
COUNT is above 65535 (with --bytes: above 99), they use a bucket with a smaller burst and rate, so
that it also passes at most COUNT in any PERIOD.`

// Others is the annotation of a root command that has not all verbs: where the others are.
const Others = "others"

// New completes root, the command for the command line args, and adds verbs to it.
func New(root *cobra.Command, args []string, verbs ...*cobra.Command) *cobra.Command {
	root.Version = Version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Args, root.RunE = cobra.ArbitraryArgs, unknownVerb
	root.SetVersionTemplate("headgate {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// cobra gives the flags of an unknown verb to the root, which has none of them.
		if cmd == root && !strings.HasPrefix(args[0], "-") {
			return unknownVerb(root, args)
		}
		return FlagError(cmd, err)
	})
	help := newHelp()
	root.SetHelpCommand(help)
	foldHelp(root)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(append(verbs, newVersion(),
		&cobra.Command{Use: "limits", Short: "How a limit is written", Long: limitsHelp})...)
	help.ValidArgs = namesOf(root)
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "stringArray" {
				f.Value = &once{Value: f.Value}
			}
		})
	}
	return root
}

// namesOf returns the names of the verbs of root.
func namesOf(root *cobra.Command) (names []string) {
	for _, cmd := range root.Commands() {
		if cmd.Runnable() && cmd.Name() != "help" && !cmd.Hidden {
			names = append(names, cmd.Name())
		}
	}
	return names
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Print the help of a verb",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return Usagef(cmd, "%w", err)
			}
			if len(rest) > 0 {
				return unknownVerb(about, rest)
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "headgate", Version())
			return err
		},
	}
}

// release is the version, where the build sets it; see .goreleaser.yaml.
var release string

// Version returns the version of this module as it was built.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// unknownVerb returns the error for a command line without a verb that exists.
func unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef(root, "no verb given; want one of %s", strings.Join(namesOf(root), ", "))
	}
	if like := spelling.Like(args[0], namesOf(root)); len(like) > 0 {
		return Usagef(root, "unknown verb %q; did you mean %s?",
			args[0], strings.Join(like, " or "))
	}
	return Usagef(root, "unknown verb %q; want one of %s%s", args[0],
		strings.Join(namesOf(root), ", "), root.Annotations[Others])
}

// NoArgs returns an error if there are arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(cmd, "unexpected argument %q; want flags only", args[0])
	}
	return nil
}
