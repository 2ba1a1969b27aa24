package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
)

// limitsFlag adds --limit to cmd, which may be repeated.
func limitsFlag(cmd *cobra.Command, texts *[]string, help string) {
	cmd.Flags().StringArrayVarP(texts, "limit", "l", nil, help)
}

// parseLimits reads the values of --limit, at least one.
func parseLimits(cmd *cobra.Command, texts []string) ([]headgate.Limit, error) {
	if len(texts) == 0 {
		return nil, usagef(cmd, "no limit given; add one such as --limit 60/m")
	}
	limits := make([]headgate.Limit, 0, len(texts))
	for _, text := range texts {
		if name, _, _ := strings.Cut(text, "="); name == "imit" { // -limit is read as -l imit
			return nil, usagef(cmd, `a flag has two dashes; did you mean "--limit"?`)
		}
		l, err := headgate.ParseLimit(text)
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// target is the limits, key and store of a verb, as given by flags.
type target struct {
	limits []string
	key    string
	store  storeFlag

	paces  bool  // a limit without a burst paces
	smooth bool  // also by less than the count at a time
	burst  int64 // of --burst
}

func (t *target) flags(cmd *cobra.Command) {
	limitsFlag(cmd, &t.limits, "use the limit `TEXT`, such as \"10/s burst 50\"; "+
		"repeat it to use several limits together")
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&t.key, "key", "default", "use the key `K`, such as user:42")
	t.store.flag(cmd)
}

// open opens the store, and makes a limiter of it and the limits.
func (t *target) open(
	cmd *cobra.Command,
) (*headgate.Limiter, []headgate.Limit, *storeurl.Store, error) {
	if t.key == "" { // such as that of a variable that is not set
		return nil, nil, nil, usagef(cmd, "--key is empty; want a key such as user:42")
	}
	limits, err := parseLimits(cmd, t.limits)
	if err == nil && t.paces {
		err = t.pace(cmd, limits)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := t.store.open(cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := headgate.NewLimiter(s.Store, limits...)
	if err != nil {
		s.Close()
	}
	return l, limits, s, err
}
