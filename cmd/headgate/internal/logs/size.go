package logs

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

const sizeHelp = `Find the smallest limits that deny at most 0, 0.01, 0.1 and 1% of the requests
of access logs. Propose three of them, and report what each would have denied. The
results are exact: headgate replay denies the same requests.

Limits are token buckets. For each period (--per), size finds the smallest n for n/period. For
each rate (--rate), it finds the smallest burst. All proposed limits have the same period: the
period whose limits have the smallest product of burst and rate.

Logs are read as by headgate replay. If over 1% of the lines cannot be read, the exit code is
3. Use - for standard input. If a log is piped in, FILE may be omitted. Files are merged
by time and may be named in any order. A line is late if a line with a later time stands
before it. If over 1% of the lines are late by more than --reorder, the numbers are wrong, and
the exit code is 3.

IPv6 clients are limited by their /64 network.`

const sizeExample = `  headgate size access.log access.log.1.gz
  headgate size --by header:X-Api-Key --per 1m --per 1d access.log
  headgate size --rate 10/s --rate 1/s --json access.log`

// sizeFlags are the flags of size as given.
type sizeFlags struct {
	Flags

	pers  []string
	rates []string
}

// NewSize makes the verb size for the command line args.
func NewSize(args []string) *cobra.Command {
	var f sizeFlags
	cmd := &cobra.Command{
		Use:     "size [FILE...|-]",
		Short:   "Find the limits that access logs need",
		Long:    sizeHelp,
		Example: sizeExample,
		RunE:    f.run,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.pers, "per", nil,
		"find n/`PERIOD`, such as 1m or 1h30m; repeat it for several "+
			"(default: 1s, 10s, 1m, 15m and 1h)")
	flags.StringArrayVar(&f.rates, "rate", nil,
		"find the burst for `RATE`, such as 10/s; repeat it for several "+
			"(default: the rates of the limits that size proposes)")
	f.flags(cmd, args)
	return cmd
}

func (f *sizeFlags) run(cmd *cobra.Command, files []string) error {
	c, err := f.config(cmd)
	if err != nil {
		return err
	}
	return f.analyse(cmd, files, &report.Build{Kind: report.KindSize, Size: c})
}

func (f *sizeFlags) config(cmd *cobra.Command) (c replay.SizeConfig, err error) {
	if c.Reading, err = f.Reading(cmd); err != nil {
		return c, err
	}
	for _, text := range f.pers {
		p, err := parsePeriod(cmd, text)
		if err != nil {
			return c, err
		}
		c.Periods = append(c.Periods, p)
	}
	for _, text := range f.rates {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			return c, err
		}
		c.Rates = append(c.Rates, l)
	}
	return c, nil
}

// parsePeriod reads a period of --per as in the text form of a limit, such as m or 1h30m.
func parsePeriod(cmd *cobra.Command, text string) (time.Duration, error) {
	l, err := headgate.ParseLimit("1/" + text)
	if err != nil || strings.ContainsAny(text, " \t") ||
		l.Algorithm() == headgate.AlgorithmCalendarWindow {
		return 0, command.Usagef(cmd, "--per is %q; want a period such as s, 15m, 1h30m or d", text)
	}
	return l.Period(), nil
}
