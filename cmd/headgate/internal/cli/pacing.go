package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/internal/await"
)

// pacer makes pipe and exec wait: each part, or command, for a start time that the limits allow.
type pacer struct {
	*headgate.Limiter

	key   string
	store *storeurl.Store
}

// wait returns nil when n tokens may be used, or the error of ctx if that ends before.
func (p *pacer) wait(ctx context.Context, n int64) error {
	r, err := p.Reserve(ctx, p.key, n)
	if err == nil {
		err = awaitStart(ctx, r)
	}
	return storeError(ctx, p.store, err)
}

// awaitStart waits for the start of r, and cancels r if ctx ends before. Unlike r.Wait it returns
// after the cancel, because the process then ends.
func awaitStart(ctx context.Context, r *headgate.Reservation) error {
	err := await.Sleep(ctx, r.Delay())
	if err != nil {
		_ = r.Cancel(ctx) // after an error it stays charged
	}
	return err
}

// used charges n tokens from now instead of from their start time, if no other process uses the
// store. So the limits hold for when a part was written, even if that was late or took long.
func (p *pacer) used(n int64) {
	if !p.store.Memory() {
		return
	}
	ctx := context.Background()
	_, _ = p.Refund(ctx, p.key, n) // memory never fails
	_, _ = p.Charge(ctx, p.key, n)
}

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
		return usagef(cmd, "--burst is %d; want 1 or more", t.burst)
	case given && len(limits) > 1:
		return usagef(cmd, "--burst is given with several limits; "+
			"write it in each, such as \"5/s burst 10\"")
	case given && !isPlain(t.limits[0], limits[0]):
		return usagef(cmd, "--burst is given with --limit %q; want a count and a period such as "+
			"5/s, without a burst, an algorithm or a calendar (month, year, tz)", t.limits[0])
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
