package console

import (
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// The bounds of what is known about changes.
const (
	maxChanges      = 10 // the last ones
	maxChangedLines = 20 // in each direction
)

// difference is what two configurations do not have in common: rules, overrides and domains, as the
// lines of a report. No line has a secret.
type difference struct {
	Removed []string `json:"removed"`
	Added   []string `json:"added"`
}

func differenceOf(before, after []string) difference {
	return difference{Removed: without(before, after), Added: without(after, before)}
}

// change is a load after which something else is in force.
type change struct {
	At int64 `json:"at"` // milliseconds since 1970
	difference
}

// changedBy returns the changes up to that time, after which the lines after are in force.
func (l *loaded) changedBy(after []string, at time.Time) []change {
	before := l.lines
	if l.at.IsZero() || slices.Equal(before, after) {
		return l.changes
	}
	list := append(slices.Clip(l.changes), change{at.UnixMilli(), differenceOf(before, after)})
	return list[max(0, len(list)-maxChanges):]
}

// inForce returns the lines of a report that are about rules, overrides and domains.
func (h *Handler) inForce(c *config.Config) []string {
	lines := strings.FieldsFunc(c.RuleLines(), func(r rune) bool { return r == '\n' })
	if domains := h.options.Domains.Config(); domains != nil {
		for line := range strings.Lines(domains.String()) {
			lines = append(lines, "domain "+strings.TrimSpace(line))
		}
	}
	return lines
}

// without returns the first lines of a that are not in b.
func without(a, b []string) []string {
	has := make(map[string]bool, len(b))
	for _, line := range b {
		has[line] = true
	}
	list := []string{}
	for _, line := range a {
		if !has[line] && len(list) < maxChangedLines {
			list = append(list, line)
		}
	}
	return list
}
