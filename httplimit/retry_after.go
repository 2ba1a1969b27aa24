package httplimit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/pause"
)

// This file reads the fields of a response that say when to call again. A value that
// cannot be read is ignored; the values next to it still count.

// requestedPause returns the pause that a response, received at now, asks for, or 0.
// Retry-After comes before RateLimit, as the draft of that requires.
func requestedPause(status int, h http.Header, now time.Time) time.Duration {
	if status < 200 || status > 299 {
		if d := readRetryAfter(h, now); d > 0 {
			return d
		}
	}
	return readRateLimit(h)
}

// readRetryAfter reads Retry-After: seconds, or a date in one of its three forms. It returns
// at most pause.Longest.
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get(retryAfterField)) // another RoundTripper may have left spaces
	if n, ok := parseSeconds(value); ok {
		return n
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date")) // by the server's clock
	if err != nil {
		sent = now.Truncate(time.Second)
	}
	return min(max(at.Sub(sent), 0), pause.Longest)
}

// readRateLimit returns the longest t of the limits in RateLimit with r=0.
func readRateLimit(h http.Header) (pause time.Duration) {
	for _, line := range h[rateLimitField] {
		for rest, more := line, true; more; {
			var item string
			rest, item, more = cutOutsideQuotes(rest, ',')
			pause = max(pause, limitPause(item))
		}
	}
	return pause
}

// limitPause returns t of an item of RateLimit such as "name";r=0;t=30, or 0 if tokens remain.
// Of equal parameters the last counts.
func limitPause(item string) time.Duration {
	remaining, wait := time.Duration(-1), time.Duration(-1)
	for more := true; more; {
		var parameter string
		item, parameter, more = cutOutsideQuotes(item, ';')
		name, value, _ := strings.Cut(strings.Trim(parameter, " \t"), "=")
		n, ok := parseSeconds(value)
		switch {
		case !ok:
		case name == "r" && remaining < 0:
			remaining = n
		case name == "t" && wait < 0:
			wait = n
		}
	}
	if remaining != 0 {
		return 0
	}
	return max(wait, 0)
}

// cutOutsideQuotes cuts at the last separator that is in no quoted string. It searches from the
// end, so that a quote that a client left open hides nothing.
func cutOutsideQuotes(list string, separator byte) (before, last string, more bool) {
	inside := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !escaped(list[:i]):
			inside = !inside
		case list[i] == separator && !inside:
			return list[:i], list[i+1:], true
		}
	}
	return "", list, false
}

// escaped reports whether what follows before is escaped by a backslash.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// parseSeconds reads a whole number of seconds without a sign. It returns at most pause.Longest.
func parseSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil { // out of range, since all are digits
		return pause.Longest, true
	}
	return time.Duration(min(n, int64(pause.Longest/time.Second))) * time.Second, true
}
