package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// static are the parts of the page that need no script. All text of logs goes through visible.
var static = template.Must(template.New("static.html").Funcs(template.FuncMap{
	"number": number, "plural": plural, "percent": percent, "visible": visible, "when": when,
	"period": func(k replay.StandOutKey) string { return when(k.From, k.To) },
}).ParseFS(page, "page/static.html"))

// Title is the answer of the page, without a script.
func (d *Data) Title() string {
	first := "No limit"
	if len(d.Limits) > 0 {
		first = d.Limits[0].Limit
	}
	switch s := d.Size.StandOut; {
	case d.Size.Requests == 0:
		return "The logs have no requests"
	case d.Size.Requests < fewRequests:
		return "Too few requests to choose a limit"
	case d.Kind == KindReplay && len(d.Limits) == 1:
		l := d.Replay.Limits[0]
		return first + " denies " + percent(l.Denied, l.Requests) + " of the requests"
	case s != nil:
		return "First decide about " + plural(int64(len(s.Keys)), "key", "keys")
	case d.Kind == KindReplay:
		return "What " + number(int64(len(d.Limits))) + " limits would have denied"
	}
	return "Start with " + d.Limits[len(d.Limits)-1].Limit
}

// fewRequests are too few for an advice, as in the script.
const fewRequests = 100

// Why says what the answer comes from.
func (d *Data) Why() string {
	if s := d.Size.StandOut; s != nil {
		rest := d.Size.Keys - int64(len(s.Keys))
		return "The other " + plural(rest, "key needs", "keys need") + " at most " +
			s.Rest.Limit.String() + ". Look at what the keys that stand out requested: a scanner " +
			"or a bot may be denied, an office behind one address or a customer may not."
	}
	return "No key stands out."
}

// KeyEvidence is a key that stands out, with what it requested and what each limit denies to it.
type KeyEvidence struct {
	replay.StandOutKey

	Asked  []AskedKind
	Denied []string // such as 10/m: 84%
}

// AskedKind is a kind of names that a key asked for, such as its paths.
type AskedKind struct {
	Kind, Kinds string
	replay.AskedFor
}

// More is how many names are not listed.
func (a AskedKind) More() int64 { return a.Names - int64(len(a.Top)) }

// Evidence returns the keys that stand out, the one that needs most first.
func (d *Data) Evidence() (all []KeyEvidence) {
	if d.Size.StandOut == nil {
		return nil
	}
	for i, k := range d.Size.StandOut.Keys {
		e := KeyEvidence{StandOutKey: k}
		for l, limit := range d.Limits {
			if n := d.deniedTo(l, k); n >= 0 {
				e.Denied = append(e.Denied, limit.Limit+": "+percent(n, k.Requests))
			}
		}
		e.Denied = slices.Compact(e.Denied)
		if seen := d.Replay.Detail.Evidence; i < len(seen) {
			for _, a := range []AskedKind{
				{"path", "paths", seen[i].Paths}, {"method", "methods", seen[i].Methods},
				{"status", "statuses", seen[i].Statuses},
				{"user agent", "user agents", seen[i].Agents},
			} {
				if len(a.Top) > 0 {
					e.Asked = append(e.Asked, a)
				}
			}
		}
		all = append(all, e)
	}
	return all
}

// deniedTo returns how many requests of a key that stands out a limit denies, or -1 if that is not
// in the data.
func (d *Data) deniedTo(limit int, k replay.StandOutKey) int64 {
	if d.Kind == KindSize && limit < len(k.Denied) {
		return k.Denied[limit]
	}
	listed := d.Replay.Detail.Keys[limit]
	i := slices.IndexFunc(listed, func(l replay.DeniedKey) bool { return l.Key == k.Key })
	switch {
	case i >= 0:
		return listed[i].Denied
	case int64(len(listed)) < d.Replay.Detail.DeniedKeysTotal[limit]:
		return -1
	}
	return 0
}

// number formats n with commas between thousands.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// percent formats a part of all: never 0% of something, nor 100% of less than all.
func percent(part, all int64) string {
	switch share := 100 * float64(part) / float64(max(all, 1)); {
	case part == 0 || part == all && all > 0:
		return strconv.FormatFloat(share, 'f', 0, 64) + "%"
	case share < 0.0001:
		return "<0.0001%"
	case share > 99.99:
		return ">99.99%"
	case share >= 99.9:
		return strconv.FormatFloat(share, 'f', 2, 64) + "%"
	case share < 1:
		return strconv.FormatFloat(share, 'g', 2, 64) + "%"
	default:
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(share, 'g', 3, 64), 64)
		return strconv.FormatFloat(rounded, 'f', -1, 64) + "%"
	}
}

// when formats a time from and to in UTC, such as 1 May 2026, 19:28–19:33.
func when(from, to time.Time) string {
	const day, clock = "2 Jan 2006", "15:04"
	end := to.Format(clock)
	if from.Format(day) != to.Format(day) {
		end = to.Format(day + ", " + clock)
	}
	return from.Format(day+", "+clock) + "–" + end
}

// visible writes a name so that all of it can be seen: \u202E in place of such a character.
func visible(k replay.LogKey) string {
	text, err := k.MarshalText()
	if err != nil || len(text) == 0 {
		return "(empty)"
	}
	var b strings.Builder
	for _, r := range string(text) {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	return b.String()
}
