package command

import (
	"errors"
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

// FlagError returns the error of pflag in the words of this command.
func FlagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, e)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return Usagef(cmd, "--%s has no value; add one", e.GetFlag().Name)
	}
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	switch {
	case !ok:
		return Usagef(cmd, "%w", err)
	case errors.Is(err, errTwice):
		return Usagef(cmd, "--%s is given twice; give it once", e.GetFlag().Name)
	}
	flag := e.GetFlag()
	return Usagef(cmd, "--%s is %q; want %s", flag.Name, e.GetValue(), WantOf(flag, err))
}

// WantOf returns what flag accepts, after err of a value that it does not accept.
func WantOf(flag *pflag.Flag, err error) string {
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
	short := e.GetSpecifiedShortnames() // -x, or the rest of -json or -version
	if short != "" {
		name, _, _ = strings.Cut(short, "=")
		given = "-" + name
	}
	like := spelling.Like(name, FlagNames(cmd))
	switch {
	case len(like) > 0 && short != "":
		return Usagef(cmd, "a flag has two dashes; did you mean \"--%s\"?",
			strings.Join(like, `" or "--`))
	case len(like) > 0:
		return Usagef(cmd, "unknown flag %q; did you mean \"--%s\"?",
			given, strings.Join(like, `" or "--`))
	}
	return Usagef(cmd, "unknown flag %q; want one of --%s%s",
		given, strings.Join(FlagNames(cmd), ", --"), cmd.Root().Annotations[Others])
}

// FlagNames returns the flags of cmd that its help lists.
func FlagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
