package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

// paceFlags adds --burst to cmd, whose limits pace unless it is given.
func (t *target) paceFlags(cmd *cobra.Command) {
	t.paces = true
	cmd.Flags().Int64Var(&t.burst, "burst", 0,
		"use a token bucket with a burst of `N`")
	cmd.Flags().Lookup("burst").DefValue = "" // the default is no bucket
}

// pace replaces the limits that are given as a count and a period alone. With --burst they become
// buckets, otherwise never more than the count passes in any period.
func (t *target) pace(cmd *cobra.Command, limits []headgate.Limit) error {
	given := cmd.Flags().Changed("burst")
	switch {
	case given && t.burst < 1:
		return command.Usagef(cmd, "--burst is %d; want 1 or more", t.burst)
	case given && len(limits) > 1:
		return command.Usagef(cmd, "--burst is given with several limits; "+
			"write it in each, such as \"5/s burst 10\"")
	case given && !isPlain(t.limits[0], limits[0]):
		return command.Usagef(cmd, "--burst is given with --limit %q; want a count and a period "+
			"such as 5/s, without a burst, an algorithm or a calendar (month, year, tz)",
			t.limits[0])
	case given:
		limits[0] = limits[0].Burst(t.burst)
		return nil
	}
	for i, text := range t.limits {
		if isPlain(text, limits[i]) {
			limits[i] = paced(limits[i], t.smooth)
		}
	}
	return nil
}

// isPlain reports whether text, which says l, has no burst and no algorithm, and is not a calendar
// window such as 5/month.
func isPlain(text string, l headgate.Limit) bool {
	if _, rest, named := strings.Cut(text, "="); named {
		text = rest
	}
	return len(strings.Fields(text)) == 1 && l.Algorithm() == headgate.AlgorithmTokenBucket
}

const (
	maxLog = 1<<16 - 1 // the largest count of a sliding log

	// A bucket that grants at most n in any period has this part of n as its burst.
	burstPart = 100
)

// paced returns a limit that never grants more than the count of the bucket l in any period: a
// sliding log, or for large counts, or where the flow shall be smooth, a bucket whose burst and
// refill together are at most the count.
func paced(l headgate.Limit, smooth bool) headgate.Limit {
	n, period := l.Refill(), l.Period()
	p := headgate.SlidingLog(n, period)
	if n > maxLog || smooth && n >= burstPart {
		burst := n / burstPart
		p = headgate.Per((burstPart-1)*burst, period).Burst(burst)
	}
	if unnamed := l.Named(""); unnamed != l {
		p = p.Named(l.Name())
	}
	return p
}
