package logs

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

const replayHelp = `Run the requests of access logs against limits that are not live yet, and report
which keys would have been denied. Each request is decided at its time in the log. Several
limits are compared side by side.

Logs may be plain, gzip or bzip2. The format of each line is detected, after what syslog,
Kubernetes or Docker has written before it; docs/replay.md lists the formats. Describe another
one by --format or --field. If over 1% of the lines cannot be read, the exit code is 3. Use -
for standard input. If a log is piped in, FILE may be omitted.

Files are merged by time and may be named in any order. A line is late if
a line with a later time stands before it. Lines that are late by up to --reorder are sorted.
If over 1% of the lines are late by more, the numbers are wrong, and the exit code is 3. Logs
that were joined by zcat *.gz have such lines, so name the files instead.

IPv6 clients are limited by their /64 network.`

const replayExample = `  headgate replay --limit 60/m access.log access.log.1.gz
  headgate replay --limit 60/m --limit "10/s burst 50" --by ip,path access.log
  headgate replay --limit 5/15m --json access.log access.log.*.gz
  headgate replay --limit 60/m --format '$remote_addr $msec "$request"' web.log
  headgate replay --limit 60/m --field client=user.ip,time=when requests.jsonl
  kubectl logs deploy/web | headgate replay --limit 60/m`

// NewReplay makes the verb replay for the command line args.
func NewReplay(args []string) (*cobra.Command, *Flags) {
	var f Flags
	var limits []string
	cmd := &cobra.Command{
		Use:     "replay --limit TEXT... [FILE...|-]",
		Short:   "Test limits on access logs",
		Long:    replayHelp,
		Example: replayExample,
		RunE: func(cmd *cobra.Command, files []string) error {
			return f.replay(cmd, limits, files)
		},
	}
	command.LimitsFlag(cmd, &limits,
		"test the limit `TEXT`, such as \"10/s burst 50\"; repeat it to compare several")
	f.flags(cmd, args)
	return cmd, &f
}

func (f *Flags) replay(cmd *cobra.Command, texts, files []string) error {
	limits, err := command.ParseLimits(cmd, texts)
	if err != nil {
		return err
	}
	reading, err := f.Reading(cmd)
	if err != nil {
		return err
	}
	if n := len(limits); n > report.MaxLimits && f.report.wanted(cmd) {
		return command.Usagef(cmd, "--report shows at most %d limits; %d are given",
			report.MaxLimits, n)
	}
	return f.analyse(cmd, files, &report.Build{
		Kind: report.KindReplay, Limits: limits, Size: replay.SizeConfig{Reading: reading},
	})
}
