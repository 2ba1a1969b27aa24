package main

import (
	"bufio"
	"cmp"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/replay"
)

const replayHelp = `Run the requests of access logs against limits that are not live yet, each at the time
it was recorded, and report which keys would have been denied. Several limits are
compared side by side.

Logs may be in the combined or common format, JSON lines or W3C, plain or gzip. The format
of each is detected. - is standard input, as are no files at all if a log is piped in.

Files are merged by time and may be named in any order. The lines of each file must be
in order: rotated logs that were joined, by zcat *.gz for example, are not. If over 1 % of
the lines are out of order, the numbers are wrong, and the exit code is 3.

IPv6 clients are limited by their /64 network.`

const replayExample = `  headgate replay --limit 60/m access.log access.log.1.gz
  headgate replay --limit 60/m --limit "10/s burst 50" --by ip,path access.log
  headgate replay --limit 5/15m --json access.log access.log.*.gz
  kubectl logs deploy/web | headgate replay --limit 60/m`

// replayFlags are the flags of replay as given.
type replayFlags struct {
	logFlags

	limits []string
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay --limit TEXT... [FILE...|-]",
		Short:   "Test limits on access logs",
		Long:    replayHelp,
		Example: replayExample,
		RunE:    f.run,
	}
	limitsFlag(cmd, &f.limits,
		"test the limit `TEXT`, such as \"10/s burst 50\"; repeat it to compare several")
	flags := cmd.Flags()
	flags.SortFlags = false
	f.flags(cmd)
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, files []string) error {
	config, err := f.config(cmd)
	if err != nil {
		return err
	}
	logs, size, closeAll, err := openLogs(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	bar := newProgress(cmd.ErrOrStderr(), "replay", size)
	report, err := withProgress(cmd.Context(), bar, func() (*replay.Report, error) {
		config.Progress = bar.read.Store
		return replay.Run(cmd.Context(), config, logs...)
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	if f.json {
		err = printJSON(out, report)
	} else {
		printReport(out, report, columns(cmd.OutOrStdout()))
	}
	if err := cmp.Or(err, out.Flush()); err != nil && !readerClosed(err) {
		return err
	}
	return lateError(&report.Traffic, f.reorder)
}

func (f *replayFlags) config(cmd *cobra.Command) (c replay.Config, err error) {
	if c.Limits, err = parseLimits(cmd, f.limits); err != nil {
		return c, err
	}
	limits := c.Limits
	c, err = f.logFlags.config(cmd)
	c.Limits = limits
	return c, err
}
