package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/cmd/headgate/internal/spelling"
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
	name, given := e.GetSpecifiedName(), "--"+e.GetSpecifiedName()
	if cmd.Name() == "serve" && slices.Contains(fileFields, name) {
		return usagef(cmd, "unknown flag %q; it is a field of the file that --config names", given)
	}
	short := e.GetSpecifiedShortnames() // -x, or the rest of -json or -version
	if short != "" {
		name, _, _ = strings.Cut(short, "=")
		given = "-" + name
	}
	like := spelling.Like(name, flagNames(cmd))
	switch {
	case len(like) > 0 && short != "":
		return usagef(cmd, "a flag has two dashes; did you mean \"--%s\"?",
			strings.Join(like, `" or "--`))
	case len(like) > 0:
		return usagef(cmd, "unknown flag %q; did you mean \"--%s\"?",
			given, strings.Join(like, `" or "--`))
	}
	return usagef(cmd, "unknown flag %q; want one of --%s",
		given, strings.Join(flagNames(cmd), ", --"))
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
