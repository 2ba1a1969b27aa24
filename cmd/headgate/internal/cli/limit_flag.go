package cli

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
)

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
	command.LimitsFlag(cmd, &t.limits, "use the limit `TEXT`, such as \"10/s burst 50\"; "+
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
		return nil, nil, nil, command.Usagef(cmd, "--key is empty; want a key such as user:42")
	}
	limits, err := command.ParseLimits(cmd, t.limits)
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
