package httplimit

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// This file reads the fields of a response that say when to call again. A value that
// cannot be read is ignored; the values next to it still count.

// requestedPause returns the pause that a response, received at now, asks for, or 0.
// Retry-After comes before the fields of limits, as their draft requires, and RateLimit
// before the older fields.
func requestedPause(status int, h http.Header, now time.Time, retryAfterOnly bool) time.Duration {
	now = sentAt(h, now)
	if status < 200 || status > 299 {
		if d := readRetryAfter(h, now); d > 0 {
			return d
		}
	}
	if retryAfterOnly {
		return 0
	}
	if d, ok := readRateLimit(h); ok {
		return d
	}
	return readOlderFields(h, now)
}

// sentAt returns the time of the response by the server's clock, which is in Date, or else
// by ours, in whole seconds.
func sentAt(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now.Truncate(time.Second)
}

// readRetryAfter reads Retry-After: seconds, or a date in one of its three forms.
func readRetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get(retryAfterField)) // another RoundTripper may have left spaces
	if n, ok := parseSeconds(value); ok {
		return duration(n)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// readRateLimit returns the longest t of the limits in RateLimit with r=0, and whether any
// limit in it has an r.
func readRateLimit(h http.Header) (pause time.Duration, found bool) {
	for _, line := range h[rateLimitField] {
		for item := range splitList(line, ',') {
			remains, wait, ok := parseLimitItem(item)
			found = found || ok
			if ok && remains == 0 {
				pause = max(pause, wait)
			}
		}
	}
	return pause, found
}

// parseLimitItem reads a String or Token with its parameters (RFC 9651): "name";r=0;t=30.
// Without t, wait is 0.
func parseLimitItem(item string) (remains millis, wait time.Duration, ok bool) {
	first := true
	for part := range splitList(item, ';') {
		part = strings.Trim(part, " \t")
		if first && !isStringOrToken(part) {
			return 0, 0, false
		}
		first = false
		name, value, _ := strings.Cut(part, "=")
		number, isNumber := parseSeconds(value)
		switch {
		case !isNumber:
		case name == "r":
			remains, ok = number, true
		case name == "t":
			wait = duration(number)
		}
	}
	return remains, wait, ok
}

// olderPrefixes begin the names of fields that servers sent before the draft, and of
// earlier drafts.
var olderPrefixes = []string{"X-Ratelimit-", "Ratelimit-", "X-Rate-Limit-"}

// readOlderFields returns the time until Reset, if Remaining is 0. Reset is in seconds from
// now, or a time in seconds or milliseconds since 1970. Their sizes tell them apart: 10^9
// seconds from now are 31 years, and 10^11 seconds after 1970 are in the year 5138.
func readOlderFields(h http.Header, now time.Time) time.Duration {
	for _, prefix := range olderPrefixes {
		remaining, hasRemaining := parseSeconds(h.Get(prefix + "Remaining"))
		reset, hasReset := parseSeconds(h.Get(prefix + "Reset"))
		switch {
		case !hasRemaining || !hasReset:
			continue
		case remaining > 0:
			return 0
		case reset < 1e9*second:
			return duration(reset)
		case reset >= 1e11*second:
			reset /= second
		}
		return duration(reset - millis(now.UnixMilli()))
	}
	return 0
}

// millis is a number in thousandths.
type millis int64

const second millis = 1000

// duration converts thousandths of a second; a negative number becomes 0.
func duration(n millis) time.Duration {
	return time.Duration(min(max(n, 0), millis(longestPause/time.Millisecond))) * time.Millisecond
}

// parseSeconds reads a number without sign and exponent. Decimals, which some servers send,
// are rounded up to thousandths.
func parseSeconds(s string) (millis, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, false
	}
	const maximum = 1e15
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= maximum { // err: out of range, since all are digits
		return maximum * second, true
	}
	thousandths, _ := strconv.ParseInt((fraction + "000")[:3], 10, 64)
	if len(fraction) > 3 && strings.Trim(fraction[3:], "0") != "" {
		thousandths++
	}
	return millis(n)*second + millis(thousandths), true
}

func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// isStringOrToken reports whether s is a String, with its quotes, or a Token (RFC 9651).
func isStringOrToken(s string) bool {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		return !escaped(s[:len(s)-1])
	}
	startsToken := s != "" && (s[0] == '*' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z')
	return startsToken && !strings.ContainsAny(s, "\" \t=(),;")
}

// splitList splits s at the separators outside of quoted strings.
func splitList(s string, separator byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, inside := 0, false
		for i := 0; i < len(s); i++ {
			switch {
			case inside && s[i] == '\\':
				i++
			case s[i] == '"':
				inside = !inside
			case s[i] == separator && !inside:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}
