package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

const replayHelp = `Run the requests of access logs against limits that are not live yet, each
at the time it was recorded, and report which keys would have been denied. Several limits are
compared side by side.

Logs may be in the combined or common format, JSON lines or W3C, plain or gzip. The format
of each is detected. Use - for standard input. If a log is piped in, FILE may be omitted.

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
	report reportFlag
}

func newReplay(args []string) *cobra.Command {
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
	f.report.flag(cmd, args)
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
	if f.report.wanted(cmd) {
		return f.runReport(cmd, config, logs, size)
	}
	bar := newProgress(cmd.ErrOrStderr(), "replay", size)
	r, err := withProgress(cmd.Context(), bar, func() (*replay.Report, error) {
		config.Progress = bar.read.Store
		return replay.Run(cmd.Context(), config, logs...)
	})
	if err != nil {
		return err
	}
	if err := f.printReplay(cmd, r); err != nil {
		return err
	}
	return lateError(&r.Traffic, f.reorder)
}

// runReport also writes the page of --report.
func (f *replayFlags) runReport(
	cmd *cobra.Command, c replay.Config, logs []replay.Log, size int64,
) error {
	if n := len(c.Limits); n > report.MaxLimits {
		return usagef(cmd, "--report shows at most %d limits; %d are given", report.MaxLimits, n)
	}
	page, err := f.report.begin(cmd, report.KindReplay, logs, size)
	if err != nil {
		return err
	}
	defer page.file.remove()
	data, err := f.report.build(cmd.Context(), page, &report.Build{
		Limits: c.Limits,
		Size:   replay.SizeConfig{By: c.By, Format: c.Format, Reorder: c.Reorder, Top: c.Top},
	})
	if err != nil {
		return err
	}
	plain := *data.Replay
	plain.Detail = nil // which is on the page
	if err := f.printReplay(cmd, &plain); err != nil {
		return err
	}
	return f.finish(cmd, page, data)
}

func (f *replayFlags) printReplay(cmd *cobra.Command, r *replay.Report) error {
	return f.print(cmd, r, func(w io.Writer, width int) { printReport(w, r, width) })
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
