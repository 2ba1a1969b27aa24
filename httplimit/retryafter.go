package httplimit

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What an answer says about when to come back. A value that cannot be read says nothing,
// and never more than that: the values next to it count.

// askedPause is the pause that an answer, received at now, asks for; 0 if it asks for none.
// What Retry-After says goes before the fields of limits, as their draft has it, and
// RateLimit before what is older.
func askedPause(status int, h http.Header, now time.Time, retryAfterOnly bool) time.Duration {
	now = answered(h, now)
	if status < 200 || status > 299 {
		if d := retryAfterField(h, now); d > 0 {
			return d
		}
	}
	if retryAfterOnly {
		return 0
	}
	if d, told := rateLimitField(h); told {
		return d
	}
	return olderFields(h, now)
}

// answered is when the answer was made, by the clock that made the times in it: that of
// Date, or else ours, in whole seconds.
func answered(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now.Truncate(time.Second)
}

// retryAfterField is what Retry-After says: seconds, or a date in one of its three forms.
func retryAfterField(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After")) // a RoundTripper of somebody's may have left spaces
	if n, ok := parseSeconds(value); ok {
		return duration(n)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// rateLimitField is the longest t of the limits in RateLimit of which nothing remains, and
// whether there is any limit in it that tells what remains.
func rateLimitField(h http.Header) (pause time.Duration, told bool) {
	for _, line := range h[names[rateLimit]] {
		for item := range splitList(line, ',') {
			remains, wait, ok := parseLimitItem(item)
			told = told || ok
			if ok && remains == 0 {
				pause = max(pause, wait)
			}
		}
	}
	return pause, told
}

// parseLimitItem reads a String or Token with its parameters (RFC 9651): "name";r=0;t=30.
// Without t there is nothing to wait for.
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

// olderNames begin the names of fields that many servers have sent from before there was a
// draft, and drafts have had since.
var olderNames = []string{"X-Ratelimit-", "Ratelimit-", "X-Rate-Limit-"}

// olderFields is the time to Reset, if Remaining is 0. Reset is in seconds from now, or a
// time in seconds or milliseconds since 1970, which are numbers of another size: 10^9
// seconds from now are 31 years, and 10^11 after 1970 is the year 5138.
func olderFields(h http.Header, now time.Time) time.Duration {
	for _, name := range olderNames {
		remaining, told := parseSeconds(h.Get(name + "Remaining"))
		reset, ok := parseSeconds(h.Get(name + "Reset"))
		switch {
		case !told || !ok:
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

// duration turns thousandths of a second into a Duration; less than 0 is 0.
func duration(n millis) time.Duration {
	return time.Duration(min(max(n, 0), millis(longestPause/time.Millisecond))) * time.Millisecond
}

// parseSeconds reads a number without sign and exponent. Some servers send decimals, which
// are rounded up to thousandths.
func parseSeconds(s string) (millis, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, false
	}
	const most = 1e15
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= most { // all are digits, so it is out of range
		return most * second, true
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

// isStringOrToken says whether s is a String, with its quotes, or a Token (RFC 9651).
func isStringOrToken(s string) bool {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		return !escaped(s[:len(s)-1])
	}
	return s != "" && (s[0] == '*' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z') && !strings.ContainsAny(s, "\" \t=(),;")
}

// splitList parts s at the separators that are in no quoted string.
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
