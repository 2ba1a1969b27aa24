package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/logs"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/review"
)

// reviewFlags are the flags of replay that compare two versions of the rules.
type reviewFlags struct {
	reading   *logs.Flags
	after     []string
	before    []string
	exclude   []string
	maxDenied string
}

func (f *reviewFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.after, "config", nil,
		"read the new rules from `PATH`, a file or a directory; may be repeated")
	flags.StringArrayVar(&f.before, "against", nil,
		"read the old rules, which are in force now, from `PATH`; may be repeated")
	flags.StringArrayVar(&f.exclude, "exclude", nil,
		"leave the rule or domain `NAME` out of both versions; may be repeated")
	flags.StringVar(&f.maxDenied, "max-denied", "",
		"exit with 1 if more than `SHARE` of the clients, such as 0.1%, have requests that only "+
			"the new rules deny")
}

// wanted reports whether two versions are to be compared.
func (f *reviewFlags) wanted(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"config", "against", "exclude", "max-denied"},
		cmd.Flags().Changed)
}

const reviewHelp = `

With --config and --against, compare two versions of the rules of headgate serve: report the
clients with requests that only the new rules deny. If more than --max-denied of all clients
have such requests, the exit code is 1. If the logs are empty, the exit code is 3 with
--max-denied, and 0 without it. If they have lines, but no request, it is always 3.

An access log cannot decide a domain of Envoy, or a rule with a header field, a cookie,
permits, max_wait, or a cost or count that depends on the response. If the files have such a
rule or a domain, or are invalid, the exit code is 3, with and without --max-denied. --exclude
leaves a rule or a domain out of both versions.`

// newReplay makes the verb replay, which also compares two versions of the rules.
func newReplay(args []string) *cobra.Command {
	cmd, reading := logs.NewReplay(args)
	f := reviewFlags{reading: reading}
	f.flags(cmd)
	cmd.Use = "replay --limit TEXT... | --config NEW --against OLD [FILE...|-]"
	cmd.Long += reviewHelp
	cmd.Example += "\n  headgate replay --config new.yaml --against old.yaml access.log"
	test := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if f.wanted(cmd) {
			return f.compare(cmd, files)
		}
		return test(cmd, files)
	}
	return cmd
}

// compare reports the clients that only the new rules deny.
func (f *reviewFlags) compare(cmd *cobra.Command, files []string) error {
	most, err := f.check(cmd)
	if err != nil {
		return err
	}
	reading, err := f.reading.Reading(cmd)
	if err != nil {
		return err
	}
	before, after, err := f.load(cmd)
	if err != nil {
		return err
	}
	opened, size, closeAll, err := logs.Open(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	bar := logs.NewProgress(cmd.ErrOrStderr(), "replay", size)
	reading.Progress = bar.Read
	found, err := logs.WithProgress(cmd.Context(), bar, func() (*replay.Review, error) {
		return review.Compare(cmd.Context(), reading, before, after, opened...)
	})
	if err != nil {
		return err
	}
	r := &reviewed{found, append([]string{}, f.exclude...), most, f.maxDenied}
	err = f.reading.Print(cmd, r, func(w io.Writer, width int) { printReview(w, r, width) })
	if err := cmp.Or(err, f.reading.Trust(&r.Traffic)); err != nil {
		return err
	}
	switch {
	case most != nil && r.Requests == 0:
		return errors.New("the logs have no requests, so there is nothing to compare with " +
			"--max-denied " + f.maxDenied)
	case r.above():
		return command.ErrDenied
	}
	return nil
}

// check checks the flags, and returns the value of --max-denied as a fraction, or nil.
func (f *reviewFlags) check(cmd *cobra.Command) (most *float64, err error) {
	for _, name := range []string{"limit", "by", "report"} {
		if cmd.Flags().Changed(name) {
			return nil, command.Usagef(cmd, "--%s is given; want only --config and --against", name)
		}
	}
	if len(f.after) == 0 || len(f.before) == 0 {
		return nil, command.Usagef(cmd, "--config or --against is missing; want the new rules in "+
			"--config, and the rules in force in --against")
	}
	if f.maxDenied == "" {
		return nil, nil //nolint:nilnil // there is no bound
	}
	text, ok := strings.CutSuffix(f.maxDenied, "%")
	share, err := strconv.ParseFloat(text+"e-2", 64) // as exact as a quotient
	if !ok || err != nil || !(share >= 0 && share <= 1) {
		return nil, command.Usagef(cmd, "--max-denied is %q; want a share from 0%% to 100%%, "+
			"such as 0.1%%", f.maxDenied)
	}
	return &share, nil
}

// load reads both versions, without what is excluded.
func (f *reviewFlags) load(cmd *cobra.Command) (before, after review.Revision, err error) {
	var versions [2]*config.Config
	var names []string
	for i, paths := range [][]string{f.before, f.after} {
		if versions[i], err = config.Load(paths, config.Options{}); err != nil {
			return before, after, err
		}
		for _, rule := range versions[i].Rules {
			names = append(names, rule.Name)
		}
		for _, d := range versions[i].Domains {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	for _, name := range f.exclude {
		if !slices.Contains(names, name) {
			return before, after, command.Usagef(cmd,
				"--exclude is %q; want a rule or a domain of these files: %s", name,
				cmp.Or(strings.Join(slices.Compact(names), ", "), "there is none"))
		}
	}
	if before, err = f.revision(versions[0]); err == nil {
		after, err = f.revision(versions[1])
	}
	if err == nil && len(before.Rules)+len(after.Rules) == 0 {
		err = errors.New("no rule is left, so there is nothing to compare")
	}
	return before, after, err
}

// revision returns c without what is excluded. Its error names the rules and domains that no access
// log decides.
func (f *reviewFlags) revision(c *config.Config) (r review.Revision, err error) {
	r.Overrides = c.Overrides
	var undecided []string
	for _, rule := range c.Rules {
		if slices.Contains(f.exclude, rule.Name) {
			continue
		}
		r.Rules = append(r.Rules, rule)
		if lacks := rule.NotInLog(); lacks != "" {
			undecided = append(undecided, rule.Name+" ("+lacks+")")
		}
	}
	for _, d := range c.Domains {
		if !slices.Contains(f.exclude, d.Name) {
			undecided = append(undecided, d.Name+" (a domain of Envoy)")
		}
	}
	if len(undecided) > 0 {
		return r, fmt.Errorf("an access log cannot decide %s; exclude them by --exclude NAME",
			strings.Join(undecided, ", "))
	}
	return r, nil
}

// reviewed is a review as JSON.
type reviewed struct {
	*replay.Review

	Excluded  []string `json:"excluded"`
	MaxDenied *float64 `json:"max_denied"` // a fraction; null: no bound
	bound     string   // the same as it was given
}

// above reports whether more clients are denied than allowed by --max-denied.
func (r *reviewed) above() bool {
	return r.MaxDenied != nil && float64(r.MoreClients)/float64(r.Keys) > *r.MaxDenied
}

// printReview writes r as text, with prose at most width columns wide if width is not 0.
func printReview(w io.Writer, r *reviewed, width int) {
	logs.PrintTraffic(w, &r.Traffic, width)
	for _, name := range r.Excluded {
		fmt.Fprintf(w, "excluded  %s\n", command.Printable(name))
	}
	if r.Requests == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, c := range r.Rules {
		fmt.Fprintf(w, "%s: %s denied more, of %s; %s, first at %s\n", c.Rule,
			command.Count(c.Clients, "client"), command.Thousands(r.Keys),
			command.Count(c.Requests, "request"), c.First.Format(time.DateTime))
		for _, t := range c.Top {
			fmt.Fprintf(w, "  %s  %s\n", command.Printable(t.Client),
				command.Count(t.Requests, "request"))
		}
	}
	share := 100 * float64(r.MoreClients) / float64(r.Keys)
	fmt.Fprintf(w, "total: %s denied more, of %s (%.2f%%)", command.Count(r.MoreClients, "client"),
		command.Thousands(r.Keys), share)
	if r.MaxDenied != nil {
		word := "within"
		if r.above() {
			word = "above"
		}
		fmt.Fprintf(w, ", %s --max-denied %s", word, r.bound)
	}
	fmt.Fprintln(w)
}
