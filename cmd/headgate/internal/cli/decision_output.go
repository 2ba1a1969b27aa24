package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
)

// jsonDecision is a decision as JSON. Times are in seconds.
type jsonDecision struct {
	Allowed bool        `json:"allowed"`
	Key     string      `json:"key"`
	Cost    int64       `json:"cost"`
	Store   string      `json:"store"`
	Limits  []jsonLimit `json:"limits"`
}

type jsonLimit struct {
	Limit      headgate.Limit `json:"limit"`
	Allowed    bool           `json:"allowed"`
	Remaining  int64          `json:"remaining"`
	RetryAfter *float64       `json:"retry_after,omitempty"` // nil: never
	ResetAfter float64        `json:"reset_after"`
}

func (q *query) jsonDecision(s *storeurl.Store, decisions []headgate.Decision) jsonDecision {
	a := jsonDecision{
		Allowed: headgate.Strictest(decisions).Allowed(), Key: q.key, Cost: q.cost, Store: s.Name,
	}
	for _, d := range decisions {
		a.Limits = append(a.Limits, newJSONLimit(d))
	}
	return a
}

func newJSONLimit(d headgate.Decision) jsonLimit {
	l := jsonLimit{
		Limit: d.Limit, Allowed: d.Allowed(), Remaining: d.Remaining,
		ResetAfter: d.ResetAfter.Seconds(),
	}
	if d.RetryAfter != headgate.Never {
		retry := d.RetryAfter.Seconds()
		l.RetryAfter = &retry
	}
	return l
}

// keyText returns a key as it is printed.
func keyText(key string) string {
	if key == "" {
		return `""`
	}
	return command.Printable(key)
}

func (q *query) printDecision(
	w io.Writer, s *storeurl.Store, decisions []headgate.Decision, width int,
) {
	verdict := "denied"
	if headgate.Strictest(decisions).Allowed() {
		verdict = "allowed"
	}
	what := "cost " + strconv.FormatInt(q.cost, 10)
	switch {
	case q.cost == 0, q.peeks && q.cost == 1:
		what = "peek"
	case q.peeks:
		what = "peek at " + what
	}
	line := func(label, format string, a ...any) {
		command.PrintFolded(w, fmt.Sprintf("%-9s", label), fmt.Sprintf(format, a...), width)
	}
	line(verdict, "%s, %s, store %s", keyText(q.key), what, s.Name)
	for i, d := range decisions {
		waits := ""
		if d.ResetAfter > 0 {
			waits = ", fully reset " + after(d.ResetAfter)
		}
		if !d.Allowed() {
			waits += ", retry " + after(d.RetryAfter)
		}
		line("limit", "%s%s", d.Limit, decimal(q.limits[i]))
		capacity := command.Thousands(d.Limit.Capacity())
		line("", "%s of %s remaining%s", command.Thousands(d.Remaining), capacity, waits)
	}
}

// decimal returns the text of a limit as it was given, if its count is a decimal: it is decided by
// whole numbers.
func decimal(text string) string {
	if count, _, _ := strings.Cut(text, "/"); !strings.Contains(count, ".") {
		return ""
	}
	return " (given as " + command.Printable(text) + ")"
}

// after formats a wait. It is never shorter than d.
func after(d time.Duration) string {
	switch d {
	case 0:
		return "now"
	case headgate.Never:
		return "never (the cost is more than the limit can hold)"
	}
	if d > 10*time.Millisecond {
		d = (d + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	return "in " + command.Short(d)
}
