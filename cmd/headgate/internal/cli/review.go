package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// reviewFlags are the flags of replay that compare two versions of the rules.
type reviewFlags struct {
	after     []string
	before    []string
	exclude   []string
	maxDenied string
}

func (f *reviewFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.after, "config", nil,
		"compare the rules in `PATH`, a file or a directory; may be repeated")
	flags.StringArrayVar(&f.before, "against", nil,
		"with those in `PATH`, which are in force; may be repeated")
	flags.StringArrayVar(&f.exclude, "exclude", nil,
		"leave the rule or domain `NAME` out of both; may be repeated")
	flags.StringVar(&f.maxDenied, "max-denied", "",
		"exit with 1 if more than this `SHARE` of the clients are newly denied, such as 0.1%")
}

// wanted reports whether two versions are to be compared.
func (f *reviewFlags) wanted(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"config", "against", "exclude", "max-denied"},
		cmd.Flags().Changed)
}

// compare reports who would be denied by the new rules that was not by the old ones.
func (f *replayFlags) compare(cmd *cobra.Command, files []string) error {
	most, err := f.review.check(cmd)
	if err != nil {
		return err
	}
	reading, err := f.reading(cmd)
	if err != nil {
		return err
	}
	old, fresh, err := f.review.load(cmd)
	if err != nil {
		return err
	}
	before, after := f.review.revision(old), f.review.revision(fresh)
	if err := f.review.decidable(old, fresh, before, after); err != nil {
		return err
	}
	logs, size, closeAll, err := openLogs(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	bar := newProgress(cmd.ErrOrStderr(), "replay", size)
	reading.Progress = bar.read.Store
	r, err := withProgress(cmd.Context(), bar, func() (*replay.Review, error) {
		return replay.Compare(cmd.Context(), reading, before, after, logs...)
	})
	if err != nil {
		return err
	}
	return f.conclude(cmd, &reviewed{r, f.review.exclude, most}, before, after)
}

// check checks the flags, and returns the value of --max-denied as a fraction, or nil.
func (f *reviewFlags) check(cmd *cobra.Command) (most *float64, err error) {
	for _, name := range []string{"limit", "by", "report"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef(cmd, "--%s and --config are given; want one of them", name)
		}
	}
	if len(f.after) == 0 || len(f.before) == 0 {
		return nil, usagef(cmd, "--config and --against belong together; want the new rules "+
			"by --config, and those in force by --against")
	}
	if f.maxDenied == "" {
		return nil, nil //nolint:nilnil // there is no bound
	}
	text, ok := strings.CutSuffix(f.maxDenied, "%")
	share, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(share >= 0 && share <= 100) {
		return nil, usagef(cmd, "--max-denied is %q; want a share from 0%% to 100%%, such as 0.1%%",
			f.maxDenied)
	}
	share /= 100
	return &share, nil
}

// load reads both versions, and checks that each excluded name is in one.
func (f *reviewFlags) load(cmd *cobra.Command) (before, after *config.Config, err error) {
	if before, err = config.Load(f.before, config.Options{}); err != nil {
		return nil, nil, err
	}
	if after, err = config.Load(f.after, config.Options{}); err != nil {
		return nil, nil, err
	}
	names := slices.Concat(namesOf(before), namesOf(after))
	for _, name := range f.exclude {
		if !slices.Contains(names, name) {
			return nil, nil, usagef(cmd, "--exclude is %q; want the name of a rule or domain", name)
		}
	}
	return before, after, nil
}

func namesOf(c *config.Config) (names []string) {
	for _, r := range c.Rules {
		names = append(names, r.Name)
	}
	for _, d := range c.Domains {
		names = append(names, d.Name)
	}
	return names
}

// revision returns the rules and overrides of c that are not excluded.
func (f *reviewFlags) revision(c *config.Config) replay.Revision {
	return replay.Revision{
		Rules: slices.DeleteFunc(slices.Clone(c.Rules), func(r rules.Rule) bool {
			return slices.Contains(f.exclude, r.Name)
		}),
		Overrides: c.Overrides,
	}
}

// decidable returns an error that names the rules and domains that no access log decides.
func (f *reviewFlags) decidable(old, fresh *config.Config, revisions ...replay.Revision) error {
	var names []string
	for _, r := range revisions {
		for i := range r.Rules {
			if lacks := r.Rules[i].NotInLog(); lacks != "" {
				names = append(names, r.Rules[i].Name+" ("+lacks+")")
			}
		}
	}
	for _, d := range slices.Concat(old.Domains, fresh.Domains) {
		if !slices.Contains(f.exclude, d.Name) {
			names = append(names, d.Name+" (a domain of Envoy)")
		}
	}
	return notInLog(names)
}

// notInLog returns an error that names rules; nil if there are none.
func notInLog(names []string) error {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("an access log cannot decide %s; exclude them by --exclude NAME",
		strings.Join(slices.Compact(names), ", "))
}

// reviewed is a review as JSON.
type reviewed struct {
	*replay.Review

	Excluded  []string `json:"excluded"`
	MaxDenied *float64 `json:"max_denied"` // a fraction; null: no bound
}

// above reports whether more clients are denied than allowed by --max-denied.
func (r *reviewed) above() bool {
	return r.MaxDenied != nil && float64(r.MoreClients) > *r.MaxDenied*float64(r.Keys)
}

// conclude prints r, and returns the error that it ends with.
func (f *replayFlags) conclude(cmd *cobra.Command, r *reviewed, both ...replay.Revision) error {
	var names []string
	for _, revision := range both {
		for i := range revision.Rules {
			if rule := &revision.Rules[i]; r.NoHost > 0 && rule.NeedsHost() {
				names = append(names, rule.Name+" (host, which "+
					count(r.NoHost, "request")+" of the log lack)")
			}
		}
	}
	if err := notInLog(names); err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	var err error
	if f.json {
		r.Excluded = append([]string{}, r.Excluded...)
		err = printJSON(out, r)
	} else {
		printReview(out, r, columns(cmd.OutOrStdout()))
	}
	if err := cmp.Or(err, out.Flush()); err != nil && !readerClosed(err) {
		return err
	}
	if err := lateError(&r.Traffic, f.reorder); err != nil {
		return err
	}
	if r.above() {
		return errDenied
	}
	return nil
}

// printReview writes r as text, with prose at most width columns wide if width is not 0.
func printReview(w io.Writer, r *reviewed, width int) {
	printLog(w, &r.Traffic, width)
	for _, name := range r.Excluded {
		fmt.Fprintf(w, "excluded  %s\n", printable(name))
	}
	fmt.Fprintln(w)
	for _, c := range r.Rules {
		if more := c.More; more.Requests > 0 {
			fmt.Fprintf(w, "%s: %s denied, of %s; %s, first at %s\n", c.Rule,
				moreClients(more.Clients), thousands(r.Keys), count(more.Requests, "request"),
				more.First.Format(time.DateTime))
		}
		for _, t := range c.More.Top {
			fmt.Fprintf(w, "  %s  %s\n", printable(t.Client), count(t.Requests, "request"))
		}
		if fewer := c.Fewer; fewer.Requests > 0 {
			fmt.Fprintf(w, "%s: %s of %s no longer denied\n", c.Rule,
				count(fewer.Requests, "request"), count(fewer.Clients, "client"))
		}
	}
	share := strconv.FormatFloat(100*float64(r.MoreClients)/float64(max(r.Keys, 1)), 'f', 2, 64)
	fmt.Fprintf(w, "in all: %s denied, of %s (%s%%)", moreClients(r.MoreClients),
		thousands(r.Keys), share)
	if r.MaxDenied != nil {
		word := "within"
		if r.above() {
			word = "above"
		}
		fmt.Fprintf(w, ", %s --max-denied %s%%", word,
			strconv.FormatFloat(100**r.MaxDenied, 'f', -1, 64))
	}
	fmt.Fprintln(w)
}

// moreClients returns "1 more client" or "2 more clients".
func moreClients(n int64) string {
	return strings.Replace(count(n, "client"), " ", " more ", 1)
}
