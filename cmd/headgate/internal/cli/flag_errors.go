package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
		return unknownFlag(cmd, e)
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

// wantOf returns what flag accepts, after err of a value that it does not accept.
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

// unknownFlag returns the error for a flag that does not exist.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	name, short := e.GetSpecifiedName(), e.GetSpecifiedShortnames()
	if cmd.Name() == "serve" && slices.Contains(fileFields, name) {
		return usagef(cmd, "unknown flag %q; it is a field of the file that --config names",
			"--"+name)
	}
	if short == "" {
		if like := resembling(name, flagNames(cmd)); len(like) > 0 {
			return usagef(cmd, "unknown flag %q; did you mean \"--%s\"?",
				"--"+name, strings.Join(like, `" or "--`))
		}
		return usagef(cmd, "unknown flag %q; want one of --%s",
			"--"+name, strings.Join(flagNames(cmd), ", --"))
	}
	if long := singleDashed(cmd, short); long != "" {
		return notDoubleDash(cmd, long)
	}
	return usagef(cmd, "unknown flag %q; want one of --%s",
		"-"+name, strings.Join(flagNames(cmd), ", --"))
}

// singleDashed returns the flag of which short is the text after a single dash, or after the
// shorthand that it begins with, as -version begins with -v.
func singleDashed(cmd *cobra.Command, short string) string {
	short, _, _ = strings.Cut(short, "=")
	long := ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == short || f.Shorthand != "" && f.Name == f.Shorthand+short {
			long = f.Name
		}
	})
	return long
}

// notDoubleDash returns the error for the flag name, given with a single dash.
func notDoubleDash(cmd *cobra.Command, name string) error {
	return usagef(cmd, "unknown flag %q; did you mean %q?", "-"+name, "--"+name)
}

// flagNames returns the flags of cmd that its help lists.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
