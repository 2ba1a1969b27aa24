package httplimit

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Fields is a set of header fields that tell a client its limits.
type Fields uint8

const (
	// Draft10 is RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-10. The draft still moves; a later version
	// will be another value.
	//
	// A policy has the limit's name, as q its capacity and as w the seconds in which
	// that much is granted anew, rounded up. RateLimit has as r what remains and as t
	// the seconds until more is there, rounded up: for a denial its Retry-After; for a
	// grant by a bucket the next token; for a grant by a window, the end of what it
	// counts. A denial lists the limits that refused.
	Draft10 Fields = 1 << iota

	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, of the limit that refused
	// for the longest or else has the least remaining. Reset is the Unix time in
	// seconds, rounded up, at which it is as at first sight.
	XRateLimit

	// RetryAfter is Retry-After of a denial: the seconds after which the same request
	// would be granted if nobody else came, rounded up. It is absent if that is never.
	RetryAfter

	// NoFields is a set of none.
	NoFields

	// AllFields is every field there is.
	AllFields = Draft10 | XRateLimit | RetryAfter
)

// field is one of the header fields.
type field uint8

const (
	policy field = iota
	rateLimit
	limit
	remaining
	reset
	retryAfter
	fieldCount
)

// names are as net/http keeps them, which spells "Ratelimit".
var names = [fieldCount]string{
	policy:     "Ratelimit-Policy",
	rateLimit:  "Ratelimit",
	limit:      "X-Ratelimit-Limit",
	remaining:  "X-Ratelimit-Remaining",
	reset:      "X-Ratelimit-Reset",
	retryAfter: "Retry-After",
}

// Write sets the fields of f in h for the decisions on one request, made at now. The
// fields of [Draft10] are added to those of another limiter that h may hold.
func (f Fields) Write(h http.Header, now time.Time, ds ...headgate.Decision) {
	f.write(h, now, ds, nil)
}

func (f Fields) write(h http.Header, now time.Time, ds []headgate.Decision, known *policies) {
	if len(ds) == 0 {
		return
	}
	strictest := headgate.Strictest(ds)
	denied := strictest.RetryAfter > 0
	var room [256]byte
	text, v := room[:0], values{}
	number := func(f field, n int64) {
		text = strconv.AppendInt(text, n, 10)
		v.end(f, text)
	}
	if f&Draft10 != 0 {
		if len(ds) == 1 {
			v.policy = known.item(ds[0].Limit)
		} else {
			text = known.appendList(text, ds)
		}
		v.end(policy, text)
		text = appendLimits(text, ds, denied)
		v.end(rateLimit, text)
	}
	if f&XRateLimit != 0 {
		number(limit, strictest.Limit.Capacity())
		number(remaining, strictest.Remaining)
		number(reset, unixAfter(now, strictest.ResetAfter))
	}
	if f&RetryAfter != 0 && denied && strictest.RetryAfter != headgate.Never {
		number(retryAfter, seconds(strictest.RetryAfter))
	}
	v.set(h, string(text))
}

// values are where the values of some fields end in one text, in which they follow
// each other: so all of them take two allocations. That of a single policy, which is
// the same for most requests, stands apart.
type values struct {
	policy string
	n      int
	field  [fieldCount]field
	ends   [fieldCount]int
}

// end ends the value of f.
func (v *values) end(f field, text []byte) {
	v.field[v.n], v.ends[v.n] = f, len(text)
	v.n++
}

// set puts the values into h.
func (v *values) set(h http.Header, text string) {
	all := make([]string, v.n)
	start := 0
	for i := range all {
		f := v.field[i]
		if all[i] = text[start:v.ends[i]]; f == policy && v.policy != "" {
			all[i] = v.policy
		}
		start = v.ends[i]
		value := all[i : i+1 : i+1]
		if f == policy || f == rateLimit {
			if before := h[names[f]]; len(before) > 0 {
				value = append(slices.Clip(before), value...)
			}
		}
		h[names[f]] = value
	}
}

// appendLimits appends the List of RateLimit: of all, or of those that refused.
func appendLimits(text []byte, ds []headgate.Decision, denied bool) []byte {
	first := true
	for i := range ds {
		if denied && ds[i].RetryAfter == 0 {
			continue
		}
		text = appendItem(text, first, ds[i].Limit)
		text = appendParameter(text, ";r=", ds[i].Remaining)
		if ds[i].RetryAfter != headgate.Never {
			text = appendParameter(text, ";t=", seconds(untilMore(&ds[i])))
		}
		first = false
	}
	return text
}

// appendItem appends the name of l as a String of RFC 9651. Names hold nothing to
// escape.
func appendItem(text []byte, first bool, l headgate.Limit) []byte {
	if !first {
		text = append(text, ", "...)
	}
	text = append(text, '"')
	text = append(text, l.Name()...)
	return append(text, '"')
}

// appendParameter appends an Integer of RFC 9651, which has at most 15 digits.
func appendParameter(text []byte, name string, n int64) []byte {
	text = append(text, name...)
	return strconv.AppendInt(text, min(n, 999_999_999_999_999), 10)
}

// untilMore is the time until more is granted than now: see Draft10.
func untilMore(d *headgate.Decision) time.Duration {
	if d.RetryAfter > 0 {
		return d.RetryAfter
	}
	missing, refill, period := d.Limit.Capacity()-d.Remaining, d.Limit.Refill(), d.Limit.Period()
	if missing <= 0 || refill <= 0 {
		return d.ResetAfter
	}
	// What is missing but the next tokens arrives after them.
	var later float64
	if d.Limit.Algorithm() == headgate.AlgorithmStepped {
		later = float64((missing - 1) / refill)
	} else {
		later = float64(missing-1) / float64(refill)
	}
	return max(d.ResetAfter-time.Duration(later*float64(period)), 0)
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// unixAfter is the Unix time of now + d, rounded up.
func unixAfter(now time.Time, d time.Duration) int64 {
	at := now.Add(d)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}
