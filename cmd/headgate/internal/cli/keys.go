package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

const keysHelp = `List the keys of a store, each with its state under a limit, as peek shows it.
Nothing is charged. Keys that are in their initial state are not kept, and so not listed.

The store knows the numbers of a limit without a name, but not those of a limit with a name.
Give the numbers of a named limit by --limit, such as login=5/h. Otherwise, the listing shows
what was used when the key was last charged. If --limit is given, the keys of all other
limits are left out.

--denied lists only the keys that are at their limit now. A store keeps no record of denials,
so the listing cannot show how often a key was denied. Use watch to repeat the listing:

  watch headgate keys --denied

In PATTERN, * is any text, ? is any byte, and [ab] is the byte a or b.

If the server hashes keys, the listing shows hashes. To find a key, set HEADGATE_KEY_SECRET to
the server's secret, and give the whole key to --match instead of a pattern.

The store is read in short steps and is not blocked. Keys that change meanwhile may be
missed or listed twice. Values that are not states, such as those of another program, are
left out; headgate check reports an error for such a key. With --json, each line is an object.`

// keysFlags are the flags of keys as given.
type keysFlags struct {
	limits []string
	match  string
	store  storeFlag
	denied bool
	json   bool
}

func newKeys() *cobra.Command {
	var f keysFlags
	cmd := &cobra.Command{
		Use:   "keys --store URL [--match PATTERN] [--limit TEXT]... [--denied]",
		Short: "List the keys of a store with their state",
		Long:  keysHelp,
		Example: `  headgate keys --store redis://localhost:6379 --match 'user:*'
  headgate keys --store redis://localhost:6379 --limit login=5/h --json
  watch headgate keys --store redis://localhost:6379 --denied`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.list(cmd.Context(), cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.store.kept = true
	f.store.flag(cmd)
	flags.StringVar(&f.match, "match", "*", "list keys that match `PATTERN`, such as user:*")
	limitsFlag(cmd, &f.limits, "list states of the limit `TEXT` only; may be repeated")
	flags.BoolVar(&f.denied, "denied", false, "list only keys that would be denied now")
	flags.BoolVar(&f.json, "json", false, "print JSON, an object for each line")
	return cmd
}

// open opens the store, and makes the lister for it.
func (f *keysFlags) open(cmd *cobra.Command) (*lister, error) {
	l := lister{match: f.match}
	if len(f.limits) > 0 {
		limits, err := parseLimits(cmd, f.limits)
		if err != nil {
			return nil, err
		}
		l.limits = map[string]headgate.Limit{}
		for _, limit := range limits {
			if _, twice := l.limits[limit.ID()]; twice {
				return nil, usagef(cmd, "limit %q is given twice; give it once", limit.ID())
			}
			l.limits[limit.ID()] = limit
		}
	}
	s, err := f.store.open(cmd)
	if err != nil {
		return nil, err
	}
	l.store = s
	if f.store.hashed && f.match != "*" {
		if strings.ContainsAny(f.match, "*?[") {
			s.Close()
			return nil, usagef(cmd, "--match is %q, but the store has hashes of keys; "+
				"want a whole key", f.match)
		}
		l.match = s.Redis.StoredKey(f.match)
	}
	return &l, nil
}

func (f *keysFlags) list(ctx context.Context, cmd *cobra.Command) error {
	l, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer l.store.Close()
	out, n, unknown := cmd.OutOrStdout(), 0, int64(0)
	column := limitColumn
	err = l.list(ctx, func(k listedKey) error {
		if f.denied && (!k.known || k.decision.Allowed()) {
			if !k.known && k.Limit != "" { // else permits
				unknown++
			}
			return nil
		}
		n++
		column = max(column, utf8.RuneCountInString(k.limitText())) // those after it are below it
		return f.print(out, k, column)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return &interruption{ctx.Err(), "not all keys are listed"}
	case err == nil && unknown > 0:
		_, err = fmt.Fprintf(cmd.ErrOrStderr(),
			"headgate: left out %s of named limits; "+
				"give these limits by --limit to see which are denied\n",
			count(unknown, "key"))
	case err == nil && n == 0:
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "headgate: no key matches")
	}
	return err
}

func (f *keysFlags) print(w io.Writer, k listedKey, column int) error {
	if f.json {
		return printJSONLine(w, k.json())
	}
	_, err := io.WriteString(w, k.text(column))
	return err
}
