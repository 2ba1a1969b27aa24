package rules

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Headroom lets classes of callers leave a part of each limit, and of the permits, to others. The
// request names its class. A request of another class, or of none, leaves nothing.
type Headroom struct {
	Header  string // the header field of the request that holds the class; empty: no classes
	Classes []Class
}

// Class is what the requests of one class leave.
type Class struct {
	Name    string // upper and lower case are the same
	Percent int64  // of the capacity of a limit and of the permits: 0 to 99
}

const maxClasses = 16

// ParsePercent reads a percentage from 0% to 99%.
func ParsePercent(text string) (int64, error) {
	digits, found := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !found || err != nil || n > 99 {
		return 0, fmt.Errorf("%q is not a percentage; want 0%% to 99%%, such as 50%%", text)
	}
	return int64(n), nil
}

// Validate reports the first thing that is wrong with h.
func (h *Headroom) Validate() error {
	switch {
	case h.Header == "" && len(h.Classes) == 0:
		return nil
	case !httpguts.ValidHeaderFieldName(h.Header):
		return fmt.Errorf("header %q is not a header field; want one such as X-Class", h.Header)
	case len(h.Classes) == 0:
		return errors.New("has no class; want at least one, such as batch: 50%")
	case len(h.Classes) > maxClasses:
		return fmt.Errorf("has %d classes; want at most %d", len(h.Classes), maxClasses)
	}
	for i, c := range h.Classes {
		if c.Percent < 0 || c.Percent > 99 {
			return fmt.Errorf("class %s has %d%%; want 0%% to 99%%", c.Name, c.Percent)
		}
		if strings.TrimSpace(c.Name) == "" || strings.TrimSpace(c.Name) != c.Name {
			return fmt.Errorf("class %q has a space around it, or no text; want a name", c.Name)
		}
		for _, other := range h.Classes[:i] {
			if strings.EqualFold(c.Name, other.Name) {
				return fmt.Errorf("class %s is given twice; upper and lower case are the same",
					c.Name)
			}
		}
	}
	return nil
}

// String returns the text form of h; empty: no classes.
func (h *Headroom) String() string {
	if len(h.Classes) == 0 {
		return ""
	}
	texts := make([]string, len(h.Classes))
	for i, c := range h.Classes {
		texts[i] = fmt.Sprintf("%s %d%%", c.Name, c.Percent)
	}
	return strings.Join(texts, ", ") + " by " + h.Header
}

// percent returns what a request with that header leaves, in percent.
func (h *Headroom) percent(header http.Header) int64 {
	if h.Header == "" {
		return 0
	}
	name := strings.TrimSpace(header.Get(h.Header))
	for _, c := range h.Classes {
		if strings.EqualFold(c.Name, name) {
			return c.Percent
		}
	}
	return 0
}

// Of returns what c leaves of a capacity, or of a number of permits: its part, rounded up.
func (c Class) Of(capacity int64) int64 { return partOf(c.Percent, capacity) }

func partOf(percent, capacity int64) int64 { return (capacity*percent + 99) / 100 }
