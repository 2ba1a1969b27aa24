package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootHelp = `Headgate is a rate limiter. Serve limits to other programs, test limits on access logs, decide
requests from scripts, and limit the rate of pipes and commands.

A limit is written as count/period, with an optional burst and algorithm:
  100/m    10/s burst 50    1000/d fixed-window    60/m sliding-log

Exit codes: 0 allowed, 1 denied, 2 usage error, 3 failed (a file cannot be read, a
store is unavailable), 130 interrupted, 143 terminated.`

// verbs are the names of the verbs, for errors.
const verbs = "check, demo, exec, peek, pipe, replay, reset, serve, version"

// newRoot makes the command for the command line args.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:     "headgate",
		Short:   "A rate limiter: a server, tools for scripts and pipes, and a test bench for limits",
		Long:    rootHelp,
		Version: version(),
		Example: `  headgate demo
  headgate serve --config rules.yaml
  headgate replay --limit 60/m access.log
  headgate check --limit 10/s --key user:42
  seq 1 20 | headgate pipe --limit 5/s`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownVerb,
	}
	root.SetVersionTemplate("headgate {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// cobra gives the flags of an unknown verb to the root, which has none of them.
		if cmd == root && !strings.HasPrefix(args[0], "-") {
			return unknownVerb(root, args)
		}
		return flagError(cmd, err)
	})
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newDemo(), newReplay(), newCheck(), newPeek(), newReset(), newPipe(), newExec(),
		newVersion())
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "stringArray" {
				f.Value = &once{Value: f.Value}
			}
		})
	}
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:       "help [VERB]",
		Short:     "Print the help of a verb",
		ValidArgs: strings.Split(verbs, ", "),
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usagef(cmd, "%w", err)
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
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "headgate", version())
			return err
		},
	}
}

// version returns the version of this module as it was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// unknownVerb returns the error for a command line without a verb that exists.
func unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef(root, "no verb given; want one of %s", verbs)
	}
	root.SuggestionsMinimumDistance = min((len(args[0])+1)/3, 2) // short words resemble many
	if like := root.SuggestionsFor(args[0]); len(like) > 0 {
		return usagef(root, "unknown verb %q; did you mean %s?", args[0], strings.Join(like, " or "))
	}
	return usagef(root, "unknown verb %q; want one of %s", args[0], verbs)
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := singleDash(cmd); err != nil {
		return err
	}
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q; want flags only", args[0])
	}
	return nil
}

// once is the value of a flag that may be given once.
type once struct {
	pflag.Value

	given bool
}

var errTwice = errors.New("given twice")

// Set implements pflag.Value.
func (o *once) Set(text string) error {
	if o.given {
		return errTwice
	}
	o.given = true
	return o.Value.Set(text)
}

// flagError returns the error of pflag in the words of this command.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name, short := "--"+e.GetSpecifiedName(), e.GetSpecifiedShortnames()
		if long, _, _ := strings.Cut(short, "="); cmd.Flags().Lookup(long) != nil {
			return notDoubleDash(cmd, long)
		}
		if short != "" {
			name = name[1:]
		}
		if cmd.Name() == "serve" && slices.Contains(fileFields, strings.Trim(name, "-")) {
			return usagef(cmd, "unknown flag %q; it is a field of the file that --config names", name)
		}
		return usagef(cmd, "unknown flag %q; want one of %s", name, flagNames(cmd))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usagef(cmd, "--%s has no value; add one", e.GetFlag().Name)
	}
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	switch {
	case !ok:
		return usagef(cmd, "%w", err)
	case errors.Is(err, errTwice):
		return usagef(cmd, "--%s is given twice; give it once", e.GetFlag().Name)
	}
	flag := e.GetFlag()
	return usagef(cmd, "--%s is %q; want %s", flag.Name, e.GetValue(), wantOf(flag, err))
}

// wantOf says what flag accepts, after err of a value that it does not accept.
func wantOf(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "int", "int64":
		if errors.Is(err, strconv.ErrRange) {
			return "a number of at most 64 bits"
		}
		return "a whole number, such as 10"
	case "float64":
		return "a number, such as 0.01"
	case "duration":
		return "a time with its unit, such as 90s or 5m"
	}
	return "true or false"
}

// notDoubleDash returns the error for the flag name, given with a single dash.
func notDoubleDash(cmd *cobra.Command, name string) error {
	return usagef(cmd, "unknown flag %q; did you mean %q?", "-"+name, "--"+name)
}

// flagNames lists the flags of cmd.
func flagNames(cmd *cobra.Command) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return strings.Join(names, ", ")
}
