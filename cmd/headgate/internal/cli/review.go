package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
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

// compare reports the clients that only the new rules deny.
func (f *replayFlags) compare(cmd *cobra.Command, files []string) error {
	most, err := f.review.check(cmd)
	if err != nil {
		return err
	}
	reading, err := f.reading(cmd)
	if err != nil {
		return err
	}
	before, after, err := f.review.load(cmd)
	if err != nil {
		return err
	}
	logs, size, closeAll, err := openLogs(cmd, files)
	if err != nil {
		return err
	}
	defer closeAll()
	bar := newProgress(cmd.ErrOrStderr(), "replay", size)
	reading.Progress = bar.read.Store
	found, err := withProgress(cmd.Context(), bar, func() (*replay.Review, error) {
		return replay.Compare(cmd.Context(), reading, before, after, logs...)
	})
	if err != nil {
		return err
	}
	r := &reviewed{found, append([]string{}, f.review.exclude...), most, f.review.maxDenied}
	out := bufio.NewWriter(cmd.OutOrStdout())
	if f.json {
		err = printJSON(out, r)
	} else {
		printReview(out, r, columns(cmd.OutOrStdout()))
	}
	if err := cmp.Or(err, out.Flush()); err != nil && !readerClosed(err) {
		return err
	}
	if err := cmp.Or(lateError(&r.Traffic, f.reorder), r.Unreadable()); err != nil {
		return err
	}
	switch {
	case most != nil && r.Requests == 0:
		return errors.New("the logs have no requests, so there is nothing to compare with " +
			"--max-denied " + f.review.maxDenied)
	case r.above():
		return errDenied
	}
	return nil
}

// check checks the flags, and returns the value of --max-denied as a fraction, or nil.
func (f *reviewFlags) check(cmd *cobra.Command) (most *float64, err error) {
	for _, name := range []string{"limit", "by", "report"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef(cmd, "--%s is given; want only --config and --against", name)
		}
	}
	if len(f.after) == 0 || len(f.before) == 0 {
		return nil, usagef(cmd, "--config or --against is missing; want the new rules in "+
			"--config, and the rules in force in --against")
	}
	if f.maxDenied == "" {
		return nil, nil //nolint:nilnil // there is no bound
	}
	text, ok := strings.CutSuffix(f.maxDenied, "%")
	share, err := strconv.ParseFloat(text+"e-2", 64) // as exact as a quotient
	if !ok || err != nil || !(share >= 0 && share <= 1) {
		return nil, usagef(cmd, "--max-denied is %q; want a share from 0%% to 100%%, such as 0.1%%",
			f.maxDenied)
	}
	return &share, nil
}

// load reads both versions, without what is excluded.
func (f *reviewFlags) load(cmd *cobra.Command) (before, after replay.Revision, err error) {
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
			return before, after, usagef(cmd,
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
func (f *reviewFlags) revision(c *config.Config) (r replay.Revision, err error) {
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
	printLog(w, &r.Traffic, width)
	for _, name := range r.Excluded {
		fmt.Fprintf(w, "excluded  %s\n", printable(name))
	}
	if r.Requests == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, c := range r.Rules {
		fmt.Fprintf(w, "%s: %s denied more, of %s; %s, first at %s\n", c.Rule,
			count(c.Clients, "client"), thousands(r.Keys), count(c.Requests, "request"),
			c.First.Format(time.DateTime))
		for _, t := range c.Top {
			fmt.Fprintf(w, "  %s  %s\n", printable(t.Client), count(t.Requests, "request"))
		}
	}
	share := 100 * float64(r.MoreClients) / float64(r.Keys)
	fmt.Fprintf(w, "total: %s denied more, of %s (%.2f%%)", count(r.MoreClients, "client"),
		thousands(r.Keys), share)
	if r.MaxDenied != nil {
		word := "within"
		if r.above() {
			word = "above"
		}
		fmt.Fprintf(w, ", %s --max-denied %s", word, r.bound)
	}
	fmt.Fprintln(w)
}
