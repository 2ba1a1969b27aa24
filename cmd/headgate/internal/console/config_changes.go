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

// change is a load after which other rules, overrides or domains are in force, as the lines of a
// report. No line has a secret.
type change struct {
	At      int64    `json:"at"` // milliseconds since 1970
	Removed []string `json:"removed"`
	Added   []string `json:"added"`
}

// changedBy returns the changes up to that time, after which the lines after are in force.
func (l *loaded) changedBy(after []string, at time.Time) []change {
	before := l.lines
	if l.at.IsZero() || slices.Equal(before, after) {
		return l.changes
	}
	list := append(slices.Clip(l.changes), change{
		At: at.UnixMilli(), Removed: without(before, after), Added: without(after, before),
	})
	return list[max(0, len(list)-maxChanges):]
}

// inForce returns the lines of a report that are about rules, overrides and domains.
func (h *Handler) inForce(c *config.Config) []string {
	lines := slices.Collect(strings.SplitSeq(strings.TrimSpace(c.RuleLines()), "\n"))
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
