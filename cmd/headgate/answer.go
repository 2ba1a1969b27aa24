package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// answer is a decision for programs. Times are in seconds.
type answer struct {
	Allowed bool          `json:"allowed"`
	Key     string        `json:"key"`
	Cost    int64         `json:"cost"`
	Store   string        `json:"store"`
	Limits  []limitAnswer `json:"limits"`
}

type limitAnswer struct {
	Limit      headgate.Limit `json:"limit"`
	Allowed    bool           `json:"allowed"`
	Remaining  int64          `json:"remaining"`
	RetryAfter *float64       `json:"retry_after"` // null: never
	ResetAfter float64        `json:"reset_after"`
}

type resetAnswer struct {
	Reset  bool             `json:"reset"`
	Key    string           `json:"key"`
	Limits []headgate.Limit `json:"limits"`
	Store  string           `json:"store"`
}

func (q *question) answer(s *store, decisions []headgate.Decision) answer {
	a := answer{Allowed: headgate.Strictest(decisions).Allowed(), Key: q.key, Cost: q.cost, Store: s.name}
	for _, d := range decisions {
		l := limitAnswer{Limit: d.Limit, Allowed: d.Allowed(), Remaining: d.Remaining, ResetAfter: d.ResetAfter.Seconds()}
		if d.RetryAfter != headgate.Never {
			retry := d.RetryAfter.Seconds()
			l.RetryAfter = &retry
		}
		a.Limits = append(a.Limits, l)
	}
	return a
}

func (q *question) printAnswer(w io.Writer, s *store, decisions []headgate.Decision, width int) {
	verdict := "denied"
	if headgate.Strictest(decisions).Allowed() {
		verdict = "allowed"
	}
	what := "cost " + strconv.FormatInt(q.cost, 10)
	if q.cost == 0 {
		what = "only a look"
	}
	tell := func(label, format string, a ...any) {
		printFolded(w, fmt.Sprintf("%-9s", label), fmt.Sprintf(format, a...), width)
	}
	tell(verdict, "%s, %s, store %s", printable(q.key), what, s.describe())
	for _, d := range decisions {
		retry := ""
		if !d.Allowed() {
			retry = ", retry " + after(d.RetryAfter)
		}
		tell("limit", "%s", d.Limit)
		tell("", "%s of %s remaining, as new %s%s", thousands(d.Remaining), thousands(d.Limit.Capacity()), after(d.ResetAfter), retry)
	}
}

// after says a wait in words.
func after(d time.Duration) string {
	switch d {
	case 0:
		return "now"
	case headgate.Never:
		return "never (the cost is more than the limit can hold)"
	}
	if d > 10*time.Millisecond {
		d = (d + time.Millisecond - 1).Truncate(time.Millisecond) // never less than it is
	}
	return "in " + d.String()
}
