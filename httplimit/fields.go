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
	first := known.of(ds[0].Limit)
	var room [256]byte
	v := values{}
	text := room[:0]
	if f&Draft10 != 0 {
		if len(ds) == 1 {
			v.known(policy, first.item)
		} else {
			text = known.appendList(text, ds)
			v.end(policy, text)
		}
		text = appendLimits(text, ds, denied)
		v.end(rateLimit, text)
	}
	if f&XRateLimit != 0 {
		if len(ds) == 1 {
			v.known(limit, first.capacity)
		} else {
			text = strconv.AppendInt(text, strictest.Limit.Capacity(), 10)
			v.end(limit, text)
		}
		text = strconv.AppendInt(text, strictest.Remaining, 10)
		v.end(remaining, text)
		text = strconv.AppendInt(text, unixAfter(now, strictest.ResetAfter), 10)
		v.end(reset, text)
	}
	if f&RetryAfter != 0 && denied && strictest.RetryAfter != headgate.Never {
		text = strconv.AppendInt(text, seconds(strictest.RetryAfter), 10)
		v.end(retryAfter, text)
	}
	v.set(h, string(text))
}

// values are the fields to set. The values that were made for this response follow each
// other in one text, so that they take two allocations.
type values struct {
	n     int
	field [fieldCount]field
	ends  [fieldCount]int
	text  [fieldCount]string
}

// end ends the value of f in the text.
func (v *values) end(f field, text []byte) {
	v.field[v.n], v.ends[v.n] = f, len(text)
	v.n++
}

// known is a value of f that was made before.
func (v *values) known(f field, value string) {
	v.field[v.n], v.text[v.n] = f, value
	if v.n > 0 {
		v.ends[v.n] = v.ends[v.n-1]
	}
	v.n++
}

// set puts the values into h.
func (v *values) set(h http.Header, text string) {
	all := make([]string, v.n)
	fresh, start := len(h) == 0, 0
	for i := range all {
		f := v.field[i]
		if all[i] = v.text[i]; v.text[i] == "" {
			all[i] = text[start:v.ends[i]]
		}
		start = v.ends[i]
		value := all[i : i+1 : i+1]
		if !fresh && (f == policy || f == rateLimit) {
			value = append(slices.Clip(h[names[f]]), value...)
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
