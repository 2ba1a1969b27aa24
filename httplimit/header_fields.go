package httplimit

import (
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Fields is a set of header fields that report the limits to a client.
//
// A handler may set, delete and add to these fields. It must not assign to an element of their
// values, as in h["X-Ratelimit-Limit"][0] = "1", because responses share them.
type Fields uint8

const (
	// Draft10 is RateLimit-Policy and RateLimit as in draft-ietf-httpapi-ratelimit-headers-10. The
	// draft still changes; a later version of it will be another constant.
	//
	// A policy is the name of a limit and two numbers: q is the capacity, and w is the time in
	// which an empty bucket fills, or the length of a window. A calendar has no w. RateLimit has r,
	// the tokens that remain, and t, the time until more are available. For a denial, t is its
	// Retry-After. For a grant, it is the time to the next token, or to the next fixed or calendar
	// window; a sliding window or log has no t then, because more can become available at any
	// moment. A denial lists only the limits that denied. All times are in seconds, rounded up.
	Draft10 Fields = 1 << iota

	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset of the strictest limit: see
	// [headgate.Strictest]. Reset is the Unix time in seconds, rounded up, at which the key is back
	// in its initial state.
	XRateLimit

	// RetryAfter is Retry-After of a denial: the seconds, rounded up, after which the same
	// request would be granted if no other came. It is absent if no wait helps.
	RetryAfter

	// NoFields sets no field. (The zero Fields in [Options] means all.)
	NoFields

	// AllFields is every field.
	AllFields = Draft10 | XRateLimit | RetryAfter
)

// The names in the spelling of net/http, such as "Ratelimit".
const (
	policyField     = "Ratelimit-Policy"
	rateLimitField  = "Ratelimit"
	limitField      = "X-Ratelimit-Limit"
	remainingField  = "X-Ratelimit-Remaining"
	resetField      = "X-Ratelimit-Reset"
	retryAfterField = "Retry-After"
)

// Write sets the fields of f in h, such as an http.Header, for the decisions ds on one request,
// made at now. The fields of [Draft10] are added to those that another limiter has set.
func (f Fields) Write(h map[string][]string, now time.Time, ds ...headgate.Decision) {
	f.write(h, now.UnixNano(), ds, nil)
}

// write is Write at a Unix time in nanoseconds. The values that are made for this response
// are parts of one string, so that all of them take two allocations.
func (f Fields) write(h map[string][]string, now int64, ds []headgate.Decision, known *policies) {
	if len(ds) == 0 || slices.ContainsFunc(ds, unlimited) || f&AllFields == 0 {
		return
	}
	strictest := headgate.Strictest(ds)
	denied := strictest.RetryAfter > 0
	p := known.of(strictest.Limit)
	var room [256]byte
	text := strconv.AppendInt(room[:0], strictest.Remaining, 10)
	remaining := len(text)
	text = strconv.AppendInt(text, unixAfter(now, strictest.ResetAfter), 10)
	reset := len(text)
	var limits int
	if len(ds) == 1 {
		text = p.appendLimit(text, &ds[0], text[:remaining])
		limits = len(text)
	} else {
		text = known.appendLimits(text, ds, denied)
		limits = len(text)
		text = known.appendPolicies(text, ds)
	}
	all := string(text)
	v := &[4]string{all[:remaining], all[remaining:reset], all[reset:limits], all[limits:]}
	if f&Draft10 != 0 {
		policy, limits := p.policy, v[2:3:3]
		if len(ds) > 1 {
			policy = v[3:4:4]
		}
		if len(h) > 0 { // an outer limiter may have set these fields
			policy = append(slices.Clip(h[policyField]), policy...)
			limits = append(slices.Clip(h[rateLimitField]), limits...)
		}
		h[policyField], h[rateLimitField] = policy, limits
	}
	if f&XRateLimit != 0 {
		h[limitField], h[remainingField], h[resetField] = p.limit, v[0:1:1], v[1:2:2]
	}
	if f&RetryAfter != 0 && denied && strictest.RetryAfter != headgate.Never {
		h[retryAfterField] = []string{strconv.FormatInt(seconds(strictest.RetryAfter), 10)}
	}
}

// appendLimits appends the List of RateLimit: of all, or of those that denied.
func (p *policies) appendLimits(text []byte, ds []headgate.Decision, denied bool) []byte {
	first := true
	for i := range ds {
		if denied && ds[i].RetryAfter == 0 {
			continue
		}
		if !first {
			text = append(text, ", "...)
		}
		first = false
		text = p.of(ds[i].Limit).appendLimit(text, &ds[i], nil)
	}
	return text
}

// appendLimit appends an item of RateLimit. digits are those of d.Remaining, if known.
func (p *policy) appendLimit(text []byte, d *headgate.Decision, digits []byte) []byte {
	text = append(text, p.remaining...)
	if digits != nil && d.Remaining <= maxInteger {
		text = append(text, digits...)
	} else {
		text = appendInteger(text, d.Remaining)
	}
	if wait, known := untilMore(d); known {
		text = append(text, ";t="...)
		text = appendInteger(text, seconds(wait))
	}
	return text
}

// maxInteger is the largest Integer of RFC 9651.
const maxInteger = 999_999_999_999_999

func appendInteger(text []byte, n int64) []byte {
	return strconv.AppendInt(text, min(n, maxInteger), 10)
}

// unlimited reports whether d has no limit to report to a client.
func unlimited(d headgate.Decision) bool {
	return d.Limit == headgate.Unlimited() || d.Limit == (headgate.Limit{})
}

// untilMore returns the time until more is available than now, if it is known: see Draft10.
func untilMore(d *headgate.Decision) (wait time.Duration, known bool) {
	if d.RetryAfter > 0 {
		return d.RetryAfter, d.RetryAfter != headgate.Never
	}
	// after is the number of used tokens that arrive after the next one.
	after := max(d.Limit.Capacity()-d.Remaining-1, 0)
	switch d.Limit.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		micros, _ := refillTime(d.Limit, after)
		return d.ResetAfter - time.Duration(micros)*time.Microsecond, true
	case headgate.AlgorithmSteppedTokenBucket:
		return d.ResetAfter - time.Duration(after/d.Limit.Refill())*d.Limit.Period(), true
	case headgate.AlgorithmFixedWindow, headgate.AlgorithmCalendarWindow:
		return d.ResetAfter, true
	}
	return 0, d.ResetAfter == 0
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// unixAfter returns the Unix time in seconds of now + d, rounded up. The sum itself may be
// beyond an int64.
func unixAfter(now int64, d time.Duration) int64 {
	const second = int64(time.Second)
	return now/second + int64(d)/second + ceilDiv(now%second+int64(d)%second, second)
}
