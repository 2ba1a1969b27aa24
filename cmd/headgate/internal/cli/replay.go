package cli

import (
	"github.com/spf13/cobra"

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

IPv6 clients are limited by their /64 network.

With --config and --against, compare two versions of the rules of headgate serve: report the
clients with requests that only the new rules deny. If more than --max-denied of all clients
have such requests, the exit code is 1. If the logs are empty, the exit code is 3 with
--max-denied, and 0 without it. If they have lines, but no request, it is always 3.

An access log cannot decide a domain of Envoy, or a rule with a header field, a cookie,
permits, max_wait, or a cost or count that depends on the response. If the files have such a
rule or a domain, or are invalid, the exit code is 3, with and without --max-denied. --exclude
leaves a rule or a domain out of both versions.`

const replayExample = `  headgate replay --limit 60/m access.log access.log.1.gz
  headgate replay --limit 60/m --limit "10/s burst 50" --by ip,path access.log
  headgate replay --config new.yaml --against old.yaml access.log
  headgate replay --limit 5/15m --json access.log access.log.*.gz
  headgate replay --limit 60/m --format '$remote_addr $msec "$request"' web.log
  headgate replay --limit 60/m --field client=user.ip,time=when requests.jsonl
  kubectl logs deploy/web | headgate replay --limit 60/m`

// replayFlags are the flags of replay as given.
type replayFlags struct {
	logFlags

	limits []string
	review reviewFlags
}

func newReplay(args []string) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay --limit TEXT... | --config NEW --against OLD [FILE...|-]",
		Short:   "Test limits on access logs",
		Long:    replayHelp,
		Example: replayExample,
		RunE:    f.run,
	}
	limitsFlag(cmd, &f.limits,
		"test the limit `TEXT`, such as \"10/s burst 50\"; repeat it to compare several")
	f.review.flags(cmd)
	f.flags(cmd, args)
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, files []string) error {
	if f.review.wanted(cmd) {
		return f.compare(cmd, files)
	}
	limits, err := parseLimits(cmd, f.limits)
	if err != nil {
		return err
	}
	reading, err := f.reading(cmd)
	if err != nil {
		return err
	}
	if n := len(limits); n > report.MaxLimits && f.report.wanted(cmd) {
		return usagef(cmd, "--report shows at most %d limits; %d are given", report.MaxLimits, n)
	}
	return f.analyse(cmd, files, &report.Build{
		Kind: report.KindReplay, Limits: limits, Size: replay.SizeConfig{Reading: reading},
	})
}
