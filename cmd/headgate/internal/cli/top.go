package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/await"
)

const topHelp = `Show the keys that are at their limit: those that would be denied now, longest wait
first. A store keeps no record of denials, so top cannot show how often
a key was denied.

top reads all keys of the store in short steps, and then pauses for at least four times as
long. It runs until it is interrupted; the exit code is 0 then. Give the numbers of each
named limit by --limit, such as login=5/h.`

// topFlags are the flags of top as given.
type topFlags struct {
	keysFlags

	top      int
	interval time.Duration
	once     bool
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top --store URL [--match PATTERN] [--limit TEXT]...",
		Short: "Show which keys are at their limit, live",
		Long:  topHelp,
		Example: `  headgate top --store redis://localhost:6379
  headgate top --store redis://localhost:6379 --limit login=5/h --once --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.run(cmd.Context(), cmd); cmd.Context().Err() == nil {
				return err
			}
			return nil // an interrupt is how it is meant to end
		},
	}
	f.flags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.top, "top", 20, "show at most `N` keys")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "read the store every `D`")
	flags.BoolVar(&f.once, "once", false, "print one list and exit")
	flags.BoolVar(&f.json, "json", false, "print JSON, one object in a line for each reading")
	return cmd
}

func (f *topFlags) run(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case f.top < 1:
		return usagef(cmd, "--top is %d; want 1 or more", f.top)
	case f.interval <= 0:
		return usagef(cmd, "--interval is %s; want more than 0s, such as 2s", f.interval)
	}
	l, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer l.store.Close()
	for {
		begun := time.Now()
		s, err := f.look(ctx, l)
		if err != nil {
			return err
		}
		took := time.Since(begun)
		if err := f.show(cmd.OutOrStdout(), s); err != nil || f.once {
			return err
		}
		if err := await.Sleep(ctx, max(f.interval, 4*took)); err != nil {
			return err
		}
	}
}

// snapshot is what top found in one look.
type snapshot struct {
	At      time.Time `json:"at"`
	Store   string    `json:"store"`
	Keys    int64     `json:"keys"`     // of limits that are known
	AtLimit int64     `json:"at_limit"` // of these
	Unknown int64     `json:"unknown"`  // keys of named limits that are not given
	Top     []jsonKey `json:"top"`

	top []listedKey
}

func byWaitLongest(a, b listedKey) int {
	return cmp.Compare(b.decision.RetryAfter, a.decision.RetryAfter)
}

// look reads the keys of the store.
func (f *topFlags) look(ctx context.Context, l *lister) (*snapshot, error) {
	s := &snapshot{At: time.Now().UTC(), Store: l.store.Name}
	err := l.list(ctx, func(k listedKey) error {
		switch {
		case k.Limit == "": // permits
		case !k.known:
			s.Unknown++
		case k.decision.Allowed():
			s.Keys++
		default:
			s.Keys++
			s.AtLimit++
			if s.top = append(s.top, k); len(s.top) >= 2*f.top {
				slices.SortStableFunc(s.top, byWaitLongest)
				s.top = s.top[:f.top]
			}
		}
		return nil
	})
	slices.SortStableFunc(s.top, byWaitLongest)
	s.top = s.top[:min(f.top, len(s.top))]
	s.Top = make([]jsonKey, len(s.top))
	for i := range s.top {
		s.Top[i] = s.top[i].json()
	}
	return s, err
}

// clearScreen moves the cursor to the first column and row, and clears the terminal.
const clearScreen = "\x1b[H\x1b[2J"

// show prints s: on a terminal in place of the snapshot before.
func (f *topFlags) show(w io.Writer, s *snapshot) error {
	if f.json {
		return printJSONLine(w, s)
	}
	width, height := columns(w), rows(w)
	screen := height > 0 && !f.once
	var text strings.Builder
	head := fmt.Sprintf("%s of %s at the limit at %s UTC, store %s", thousands(s.AtLimit),
		count(s.Keys, "key"), s.At.Format(time.TimeOnly), s.Store)
	if s.Unknown > 0 {
		head += fmt.Sprintf("; %s of named limits left out: give these by --limit",
			count(s.Unknown, "key"))
	}
	if screen {
		text.WriteString(clearScreen)
	}
	printFolded(&text, "", head, width)
	column := limitColumn
	for i := range s.top {
		column = max(column, utf8.RuneCountInString(s.top[i].limitText()))
	}
	for _, k := range s.top {
		row := k.text(column)
		if screen && screenLines(text.String()+row, width) >= height {
			break
		}
		text.WriteString(row)
	}
	if !screen && !f.once {
		text.WriteString("\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// screenLines returns how many lines of a terminal text takes.
func screenLines(text string, width int) int {
	n := 0
	for line := range strings.Lines(text) {
		n += 1 + max(utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))-1, 0)/max(width, 1)
	}
	return n
}
