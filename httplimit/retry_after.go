package httplimit

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/pause"
)

// This file reads the fields of a response that say when to call again. A value that
// cannot be read is ignored; the values next to it still count.

// requestedPause returns the pause that a response, received at now, asks for, or 0. Retry-After
// comes before RateLimit, as the draft of that requires. What remains is reported also by responses
// that refuse nothing, so the older drafts, which do not say when the next request passes, count
// only if the request was refused.
func requestedPause(status int, h http.Header, now time.Time) time.Duration {
	now = now.Truncate(time.Second)
	if sent, err := parseDate(h.Get("Date")); err == nil { // by the server's clock
		now = sent
	}
	if status < 200 || status > 299 {
		if d := readRetryAfter(h, now); d > 0 {
			return d
		}
	}
	d := readRateLimit(h)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		d = cmp.Or(d, readReset(h, now))
	}
	return d
}

// readRetryAfter reads Retry-After-Ms, or else Retry-After: seconds, or a date.
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := parseWait(h.Get("Retry-After-Ms"), time.Millisecond); ok && d > 0 {
		return d
	}
	value := strings.TrimSpace(h.Get(retryAfterField)) // another RoundTripper may have left spaces
	d, ok := parseWait(value, time.Second)
	if at, err := parseDate(value); !ok && err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), pause.Longest)
}

// parseDate reads a date in one of the three forms of HTTP, also with UTC or an offset in place of
// GMT.
func parseDate(s string) (time.Time, error) {
	if rest, ok := strings.CutSuffix(s, "UTC"); ok {
		s = rest + "GMT"
	}
	at, err := http.ParseTime(s)
	if err != nil {
		at, err = time.Parse(time.RFC1123Z, s)
	}
	return at, err
}

// readReset returns the time until the reset of the older drafts, unless tokens remain: of
// RateLimit-Remaining and RateLimit-Reset (draft 6), or of RateLimit: remaining=0, reset=30 (7).
// Some servers send a reset as a Unix time.
func readReset(h http.Header, now time.Time) time.Duration {
	remaining, reset := h.Get("Ratelimit-Remaining"), h.Get("Ratelimit-Reset")
	for item := range strings.SplitSeq(h.Get(rateLimitField), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
		case "remaining":
			remaining = value
		case "reset":
			reset = value
		}
	}
	if n, ok := parseWait(remaining, time.Second); ok && n > 0 {
		return 0
	}
	d, _ := parseWait(reset, time.Second)
	if d < pause.Longest {
		return d
	}
	unix, _ := strconv.ParseInt(reset, 10, 64)
	if d = time.Unix(unix, 0).Sub(now); d > pause.Longest { // perhaps in milliseconds
		return 0
	}
	return max(d, 0)
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
		n, ok := parseWait(value, time.Second)
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

// parseWait reads a number of units without a sign, and rounds it up. It returns at most
// pause.Longest.
func parseWait(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= int64(pause.Longest/unit) { // out of range, since all are digits
		return pause.Longest, true
	}
	if strings.Trim(fraction, "0") != "" {
		n++
	}
	return time.Duration(n) * unit, true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
