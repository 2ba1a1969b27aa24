package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// variable returns the environment variable for a flag: HEADGATE_STORE for --store.
func variable(flag string) string {
	return "HEADGATE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// nameOf returns the name by which a flag got that value: its own, or that of its variable.
func nameOf(flag, value string) string {
	if os.Getenv(variable(flag)) == value {
		return variable(flag)
	}
	return "--" + flag
}

// fromEnvironment sets each flag of names, or each flag if there are no names, to its variable, if
// that is set and the flag is not given.
func fromEnvironment(cmd *cobra.Command, names ...string) error {
	var errs []error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		name := variable(flag.Name)
		value, ok := os.LookupEnv(name)
		switch {
		case flag.Changed, !ok, value == "", flag.Name == "help":
			return
		case len(names) > 0 && !slices.Contains(names, flag.Name):
			return
		}
		values := []string{value}
		if flag.Value.Type() == "stringArray" {
			values = strings.Split(value, ",")
		}
		for _, v := range values {
			if err := cmd.Flags().Set(flag.Name, v); err != nil {
				want := command.WantOf(flag, err)
				errs = append(errs, command.Usagef(cmd, "%s is %q; want %s", name, v, want))
			}
		}
	})
	return errors.Join(errs...)
}

// unknownVariables returns the variables whose names begin like those of flags of cmd, and which
// no file reads. Kubernetes sets some for Services.
func unknownVariables(cmd *cobra.Command, files []string) (names []string) {
	used := map[string]bool{keySecret: true}
	_, _ = config.Load(files, config.Options{Env: func(name string) (string, bool) {
		used[name] = true
		return os.LookupEnv(name)
	}}) // whose errors the server reports
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		flag, found := strings.CutPrefix(name, "HEADGATE_")
		if found && value != "" && !used[name] && !strings.Contains(name, "_SERVICE_") &&
			!strings.Contains(name, "_PORT") &&
			cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(flag, "_", "-"))) == nil {
			names = append(names, name)
		}
	}
	return names
}
