package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
)

const keysHelp = `List the keys of a store, each with its state under a limit, as peek shows it.
Nothing is charged. Keys that are in their initial state are not kept, and so not listed.

The store knows the numbers of a limit without a name, but not those of a limit with a name.
Give the numbers of a named limit by --limit, such as login=5/h. Otherwise, the listing shows
what was used when the key was last charged. If --limit is given, the keys of all other
limits are left out.

--denied lists only the keys that are at their limit now, under limits whose numbers are known.
It cannot list permits. A store keeps no record of denials, so the listing cannot show how often
a key was denied. Use watch to repeat the listing:

  watch headgate keys --denied

In PATTERN, * is any text, ? is any byte, and [ab] is the byte a or b.

If the server hashes keys, the listing shows hashes. To find a key, set HEADGATE_KEY_SECRET to
the server's secret, and give the whole key to --match instead of a pattern. A key of more than
1 KiB is listed by its hash, too, and found by the whole key.

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
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.list(cmd.Context(), cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.store.kept = true
	f.store.flag(cmd)
	flags.StringVar(&f.match, "match", "*", "list keys that match `PATTERN`, such as user:*")
	command.LimitsFlag(cmd, &f.limits, "list states of the limit `TEXT` only; may be repeated")
	flags.BoolVar(&f.denied, "denied", false, "list only keys that would be denied now")
	flags.BoolVar(&f.json, "json", false, "print JSON, an object for each line")
	return cmd
}

// open opens the store, and makes the lister for it.
func (f *keysFlags) open(cmd *cobra.Command) (*lister, error) {
	l := lister{match: f.match}
	if len(f.limits) > 0 {
		limits, err := command.ParseLimits(cmd, f.limits)
		if err != nil {
			return nil, err
		}
		l.limits = map[string]headgate.Limit{}
		for _, limit := range limits {
			if _, twice := l.limits[limit.ID()]; twice {
				return nil, command.Usagef(cmd, "limit %q is given twice; give it once", limit.ID())
			}
			l.limits[limit.ID()] = limit
		}
	}
	s, err := f.store.open(cmd)
	if err != nil {
		return nil, err
	}
	l.store = s
	switch pattern := strings.ContainsAny(f.match, "*?["); {
	case !pattern:
		l.match = s.Redis.StoredKey(f.match)
	case f.store.hashed && f.match != "*":
		s.Close()
		return nil, command.Usagef(cmd, "--match is %q, but the store has hashes of keys; "+
			"want a whole key", f.match)
	}
	return &l, nil
}

func (f *keysFlags) list(ctx context.Context, cmd *cobra.Command) error {
	l, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer l.store.Close()
	printed, unknown, widths := 0, map[string]bool{}, keyWidths{20, 38}
	err = l.list(ctx, func(keys []listedKey) error {
		if f.denied {
			keys = slices.DeleteFunc(keys, func(k listedKey) bool {
				if !k.known && k.Limit != "" { // permits have no numbers at all
					unknown[k.limitText()] = true
				}
				return !k.known || k.decision.Allowed()
			})
		}
		printed += len(keys)
		return f.print(cmd.OutOrStdout(), keys, &widths)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return &command.InterruptedError{Err: ctx.Err(), Undone: "not all keys are listed"}
	case err == nil && len(unknown) > 0:
		names := slices.Sorted(maps.Keys(unknown))
		if more := len(names) - 3; more > 0 {
			names = append(names[:3], fmt.Sprintf("%d more", more))
		}
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "headgate: left out keys of %s, because the store "+
			"does not know their numbers; give a limit with its numbers by --limit, such as "+
			"--limit login=5/h\n", strings.Join(names, ", "))
	case err == nil && printed == 0:
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "headgate: no key matches")
	}
	return err
}

// keyWidths are the widths of the columns of a listing.
type keyWidths struct{ limit, state int }

// print prints keys. It widens the columns if need be.
func (f *keysFlags) print(w io.Writer, keys []listedKey, widths *keyWidths) error {
	for _, k := range keys {
		widths.limit = max(widths.limit, utf8.RuneCountInString(k.limitText()))
		widths.state = max(widths.state, utf8.RuneCountInString(k.state()))
	}
	out := bufio.NewWriter(w) // Flush returns the errors
	for _, k := range keys {
		if f.json {
			_ = command.EncodeJSON(out, k.json(), "")
			continue
		}
		// The key comes last, so that a long one moves no column.
		fmt.Fprintf(out, "%-*s  %-*s  %s\n",
			widths.limit, k.limitText(), widths.state, k.state(), keyText(k.Key))
	}
	return out.Flush()
}
