package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// answer is the head of a page: which limit to begin with, and why; or what to decide before.
type answer struct {
	Title, Why string

	best  int  // of the limits, or -1 if none is recommended
	shown int  // of the limits
	asks  bool // about the keys that stand out: only the reader knows whether they may be denied
}

// fewRequests are too few for an advice. balanced is the share of the requests of ordinary keys
// that a limit may deny, as that of the balanced proposal.
const fewRequests, balanced = 100, .001

const look = "Before you deny a key, look at what it requested: a scanner or a bot may be " +
	"denied, an office behind one address or a customer may not."

func (d *Data) answer() answer {
	switch {
	case d.Size.Requests == 0:
		return answer{Title: "The logs have no requests", Why: "Choose logs that have requests."}
	case d.Size.Requests < fewRequests:
		return answer{
			Title: "Too few requests to choose a limit", best: -1,
			Why: fmt.Sprintf("The logs have %s from %s.",
				plural(d.Size.Requests, "request", "requests"), plural(d.Size.Keys, "key", "keys")),
		}
	case d.Kind == KindSize:
		return d.ofProposals()
	case len(d.Limits) == 1:
		r := d.Replay.Limits[0]
		title := d.Limits[0].Limit + " denies nothing"
		if r.Denied > 0 {
			title = fmt.Sprintf("%s denies %s of the requests", d.Limits[0].Limit,
				percent(r.Denied, r.Requests))
		}
		return answer{Title: title, Why: d.reasons(0), best: -1}
	}
	return d.ofSeveral()
}

// ofProposals recommends to deny nothing, with reserve, unless a proposal denies keys that stand
// out. It shows the limit with reserve in any case, as the text that size prints.
func (d *Data) ofProposals() answer {
	need, twice := d.Size.Needed()
	why := d.need(need)
	if twice != need {
		why += twice.String() + " is twice that: a client may be busier than in the log. "
	}
	best := slices.IndexFunc(d.Limits, func(l Limit) bool { return l.Limit == twice.String() })
	if slices.ContainsFunc(d.order(), d.deniesStandOut) {
		return answer{Title: d.decide(), Why: why + look, best: -1, shown: max(best, 0), asks: true}
	}
	if d.Size.StandOut == nil && len(d.Cautions()) == 0 {
		why += "No key stands out, so the logs give no reason for a stricter limit."
	}
	return answer{Title: "Start with " + twice.String(), Why: why, best: best, shown: best}
}

// need says which limit the keys need that do not stand out.
func (d *Data) need(l headgate.Limit) string {
	if d.Size.StandOut != nil {
		keys := plural(d.others(), "key needs", "keys need")
		return fmt.Sprintf("The other %s at most %s. ", keys, l)
	}
	return fmt.Sprintf("%s is the smallest limit that would have denied none of the %s from %s. ",
		l, plural(d.Size.Requests, "request", "requests"), plural(d.Size.Keys, "key", "keys"))
}

// ofSeveral recommends the strictest limit that spares the keys that do not stand out.
func (d *Data) ofSeveral() answer {
	whom, ordinary := "the keys", d.Size.Requests
	if s := d.Size.StandOut; s != nil {
		whom = "keys that do not stand out"
		for _, k := range s.Keys {
			ordinary -= k.Requests
		}
	}
	best, least := -1, 0
	for i, l := range d.Replay.Limits {
		rest, _ := d.rest(i)
		if float64(rest) <= balanced*float64(ordinary) &&
			(best < 0 || l.Denied > d.Replay.Limits[best].Denied) {
			best = i
		}
		if fewest, _ := d.rest(least); rest < fewest {
			least = i
		}
	}
	if best < 0 {
		text := d.Limits[least].Limit
		return answer{
			Title: text + " denies the fewest requests", best: -1, shown: least,
			Why: fmt.Sprintf("Each of these limits denies more than 0.1%% of the requests of %s. "+
				"%s denies the fewest. %s", whom, text, d.reasons(least)),
		}
	}
	a := answer{
		Title: "Start with " + d.Limits[best].Limit, best: best, shown: best,
		Why: fmt.Sprintf("%s is the strictest of these limits that denies at most 0.1%% of the "+
			"requests of %s. %s", d.Limits[best].Limit, whom, d.reasons(best)),
	}
	if d.deniesStandOut(best) {
		a.Title, a.best, a.asks = d.decide(), -1, true
	}
	return a
}

func (d *Data) decide() string {
	return "First decide about " + plural(int64(len(d.Size.StandOut.Keys)), "key", "keys")
}

// others is the number of keys that do not stand out.
func (d *Data) others() int64 {
	if d.Size.StandOut == nil {
		return d.Size.Keys
	}
	return d.Size.Keys - int64(len(d.Size.StandOut.Keys))
}

// reasons says what a limit denies, and to whom.
func (d *Data) reasons(limit int) string {
	r := d.Replay.Limits[limit]
	requests := plural(r.Requests, "request", "requests")
	if r.Denied == 0 {
		return fmt.Sprintf("%s would have denied none of the %s from %s.", d.Limits[limit].Limit,
			requests, plural(r.Keys, "key", "keys"))
	}
	rest, restKeys := d.rest(limit)
	all := fmt.Sprintf("It would have denied %s of %s (%s)", Number(r.Denied), requests,
		percent(r.Denied, r.Requests))
	if rest == r.Denied {
		return fmt.Sprintf("%s, from %s of %s.", all, Number(r.DeniedKeys),
			plural(r.Keys, "key", "keys"))
	}
	others := "none of the other " + plural(d.others(), "key", "keys")
	if rest > 0 {
		others = fmt.Sprintf("%s from %s of the other %s", Number(rest), Number(restKeys),
			plural(d.others(), "key", "keys"))
	}
	return fmt.Sprintf("%s: %s from %s, and %s. %s", all, Number(r.Denied-rest),
		plural(r.DeniedKeys-restKeys, "key that stands out", "keys that stand out"), others, look)
}

// rest returns what a limit denies to the keys that do not stand out, and to how many of them.
func (d *Data) rest(limit int) (denied, keys int64) {
	denied, keys = d.Replay.Limits[limit].Denied, d.Replay.Limits[limit].DeniedKeys
	for _, e := range d.Replay.Detail.Evidence {
		if n := e.Denied[limit]; n > 0 {
			denied, keys = denied-n, keys-1
		}
	}
	return denied, keys
}

func (d *Data) deniesStandOut(limit int) bool {
	rest, _ := d.rest(limit)
	return rest < d.Replay.Limits[limit].Denied
}

// choice says for which answer about the keys that stand out a limit is right.
func (d *Data) choice(limit int) string {
	var denied, spared []string
	for i, k := range d.Size.StandOut.Keys {
		if d.Replay.Detail.Evidence[i].Denied[limit] > 0 {
			denied = append(denied, short(k.Key))
		} else {
			spared = append(spared, short(k.Key))
		}
	}
	if len(denied) == 0 {
		return "Choose it if none of the keys that stand out may be denied."
	}
	text := "Choose it if " + list(denied) + " may be denied"
	if rest, keys := d.rest(limit); rest > 0 {
		text += fmt.Sprintf(", and %s of %s", plural(rest, "request", "requests"),
			plural(keys, "other key", "other keys"))
	}
	if len(spared) > 0 {
		text += ", but not " + list(spared)
	}
	return text + "."
}

// list returns the names of keys, or of the first ones and the number of the others.
func list(keys []string) string {
	if most := 2; len(keys) > most+1 {
		keys = append(keys[:most:most], fmt.Sprintf("%d more keys", len(keys)-most))
	}
	return strings.Join(keys, " and ")
}
