package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// static are the parts of the page that need no script. All text of logs goes through visible.
var static = template.Must(template.New("static.html").Funcs(template.FuncMap{
	"number": Number, "plural": plural, "percent": percent, "when": when, "usual": usual,
	"visible": func(name any) string { return visible(replay.LogKey(fmt.Sprint(name))) },
	"upper":   func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
}).ParseFS(page, "page/static.html"))

// view is what static shows.
type view struct {
	*Data
	answer
}

// Card is one of the limits.
type Card struct {
	replay.Result

	Limit        Limit
	Index        int
	Words        string // what a token bucket grants
	Choice       string // for which answer about the keys that stand out the limit is right
	Best, Shown  bool
	Rest, OfRest int64 // requests, and their keys, that are denied and do not stand out
}

// Cards returns the limits, the strictest proposal last.
func (v view) Cards() (all []Card) {
	for _, i := range v.order() {
		c := Card{
			Result: v.Replay.Limits[i], Limit: v.Limits[i], Index: i,
			Words: words(v.Replay.Limits[i].Limit), Best: i == v.best, Shown: i == v.shown,
		}
		c.Rest, c.OfRest = v.rest(i)
		if v.asks {
			c.Choice = v.choice(i)
		}
		all = append(all, c)
	}
	return all
}

// order returns the indices of the limits as they are shown.
func (d *Data) order() (all []int) {
	for i := range d.Limits {
		all = append(all, i)
	}
	if d.Kind == KindSize {
		slices.SortStableFunc(all, func(a, b int) int {
			x, y := d.Replay.Limits[a], d.Replay.Limits[b]
			return cmp.Or(cmp.Compare(x.Denied, y.Denied),
				cmp.Compare(x.Limit.Refill(), y.Limit.Refill()))
		})
	}
	return all
}

// words says what a token bucket grants.
func words(l headgate.Limit) string {
	if l.Algorithm() != headgate.AlgorithmTokenBucket {
		return ""
	}
	per := replay.Period(l.Period()).String()
	if unit, ok := units[per]; ok {
		per = unit
	}
	return fmt.Sprintf("%s per %s, at most %s at once",
		Number(l.Refill()), per, Number(l.Capacity()))
}

var units = map[string]string{
	"1s": "second", "1m": "minute", "1h": "hour", "1d": "day", "1w": "week",
}

// Cautions are what the logs cannot say and the answer depends on.
func (d *Data) Cautions() (texts []string) {
	for _, c := range d.Size.Caveats {
		if !usual(c) {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

// usual reports whether a caveat is true of most logs.
func usual(c replay.Caveat) bool { return c.ID == "span" || c.ID == "whole-seconds" }

// KeyEvidence is a key that stands out, with what it requested and what each limit denies to it.
type KeyEvidence struct {
	replay.StandOutKey

	Asked  []replay.AskedFor
	Denied []string // such as 84% by 10/m
	Spare  string   // of a KindSize: the limit with reserve that spares it, and what this denies
}

// Evidence returns the keys that stand out, the one that needs most first.
func (d *Data) Evidence() (all []KeyEvidence) {
	for i, e := range d.Replay.Detail.Evidence {
		k := KeyEvidence{StandOutKey: d.Size.StandOut.Keys[i], Asked: e.Asked}
		if d.Kind == KindSize && len(d.Limits) > 0 {
			k.Spare = d.spare(k.Need)
		}
		for _, l := range d.order() {
			if e.Denied[l] > 0 {
				text := percent(e.Denied[l], k.Requests) + " by " + d.Limits[l].Limit
				k.Denied = append(k.Denied, text)
			}
		}
		all = append(all, k)
	}
	return all
}

// spare returns the strictest limit of the page that spares a key with reserve, and what it denies.
func (d *Data) spare(need headgate.Limit) string {
	l := replay.Reserve(need)
	for _, i := range slices.Backward(d.order()) {
		if r := d.Replay.Limits[i]; r.Limit.Refill() >= l.Refill() && r.Denied > 0 {
			return fmt.Sprintf("%s, which denies %s of %s", r.Limit,
				plural(r.Denied, "request", "requests"), plural(r.DeniedKeys, "key", "keys"))
		}
	}
	return l.String() + ", which denies nothing"
}

// Number formats n with commas: 1,234,567.
func Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
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

// when formats a time from and to in UTC, such as 1 May 2026, 19:28 to 19:33.
func when(from, to time.Time) string {
	const day, clock = "2 Jan 2006", "15:04"
	end := to.Format(clock)
	if from.Format(day) != to.Format(day) {
		end = to.Format(day + ", " + clock)
	}
	return from.Format(day+", "+clock) + " to " + end
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

// short is the beginning of a name.
func short(k replay.LogKey) string {
	if text := []rune(visible(k)); len(text) > 40 {
		return string(text[:40]) + "…"
	}
	return visible(k)
}
