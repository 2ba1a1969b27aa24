package headgate

import (
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/algorithm"
)

// units are the periods of the text form, longest first.
var units = []struct {
	name   string
	micros int64
	also   []string
}{
	{"w", 7 * 24 * 3600e6, []string{"week"}},
	{"d", 24 * 3600e6, []string{"day"}},
	{"h", 3600e6, []string{"hour"}},
	{"m", 60e6, []string{"min", "minute"}},
	{"s", 1e6, []string{"sec", "second"}},
	{"ms", 1e3, nil},
	{"us", 1, []string{"µs"}},
}

const (
	wholeLimit = "limit" // the field of an error that quotes all of the text
	wantLimit  = `a form like "100/m", "10/s burst 50", "5/15m sliding-log" or "api=1000/d fixed-window"`
	wantPeriod = "a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w)"
)

// ParseLimit reads the text form of a limit:
//
//	[name=]count/period [burst capacity] [algorithm]
//
// The count is a whole number, or a decimal such as 1.5 for buckets. The period
// is a unit (us, ms, s, m, h, d, w, or second, minute, hour, day, week), or whole
// numbers with units: 15m, 1h30m. The algorithm is token-bucket unless given;
// stepped, fixed-window, sliding-window and sliding-log are the others, and gcra and
// leaky-bucket are read as token-bucket. The capacity of a bucket is its count, rounded up,
// unless given as burst. Errors are [InvalidError]s.
func ParseLimit(text string) (Limit, error) {
	l, err := parseLimit(text)
	if e, ok := errors.AsType[*InvalidError](err); ok && e.Field != wholeLimit {
		e.Field = "limit " + strconv.Quote(text) + ": " + e.Field
	}
	return l, err
}

func parseLimit(text string) (Limit, error) {
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return Limit{}, &InvalidError{Field: wholeLimit, Value: strconv.Quote(text), Want: wantLimit}
	}
	count, per, ok := strings.Cut(fields[0], "/")
	if !ok {
		return Limit{}, &InvalidError{Field: wholeLimit, Value: strconv.Quote(text), Want: wantLimit}
	}
	p := parsedLimit{}
	if err := p.parseCount(count); err != nil {
		return Limit{}, err
	}
	if err := p.parsePeriod(per); err != nil {
		return Limit{}, err
	}
	if err := p.parseOptions(fields[1:]); err != nil {
		return Limit{}, err
	}
	l, err := p.limit()
	if err != nil {
		return Limit{}, err
	}
	if named {
		name = strings.TrimSpace(name)
		if name == "" {
			return Limit{}, &InvalidError{Field: "limit name", Value: "empty", Want: "a name before '='"}
		}
		l = l.Named(name)
	}
	if err := l.Validate(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// parsedLimit is the text form taken apart: count/scale each period.
type parsedLimit struct {
	text         string // the count as written
	count, scale int64
	period       int64 // microseconds
	burst        int64 // 0: not given
	algorithm    Algorithm
}

func (p *parsedLimit) parseCount(s string) error {
	whole, fraction, point := strings.Cut(s, ".")
	digits := whole + fraction
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || whole == "" || point && fraction == "" || !isDigit(digits[len(digits)-1]) || len(fraction) > 9 || n > maxExact || !allDigits(strings.TrimPrefix(digits, "-")) {
		return &InvalidError{Field: "count", Value: strconv.Quote(s), Want: "a whole or decimal number, at least 1 in 285 years and at most 9007199254740991, without exponent"}
	}
	p.text, p.count, p.scale = s, n, 1
	for range fraction {
		p.scale *= 10
	}
	g := algorithm.GCD(max(p.count, 1), p.scale)
	if p.count > 0 {
		p.count, p.scale = p.count/g, p.scale/g
	}
	if p.count < 1 {
		return &InvalidError{Field: "count", Value: s, Want: "more than 0"}
	}
	return nil
}

func (p *parsedLimit) parsePeriod(s string) error {
	bad := &InvalidError{Field: "period", Value: strconv.Quote(s), Want: wantPeriod}
	if u := unitMicros(s); u > 0 {
		p.period = u
		return nil
	}
	for rest := s; rest != ""; {
		digits := 0
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		letters := digits
		for letters < len(rest) && !isDigit(rest[letters]) {
			letters++
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		u := unitMicros(rest[digits:letters])
		hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(u))
		if u == 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
			return bad
		}
		if err != nil || hi != 0 || lo > maxExact || p.period+int64(lo) > maxExact {
			bad.Want = "at most 285 years"
			return bad
		}
		p.period += int64(lo)
		rest = rest[letters:]
	}
	if s == "" {
		return bad
	}
	if p.period == 0 {
		bad.Want = "at least 1us"
		return bad
	}
	return nil
}

func (p *parsedLimit) parseOptions(words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "burst" {
			if len(words) == 0 {
				return &InvalidError{Field: "burst", Value: "missing its number", Want: `"burst" followed by a whole number`}
			}
			if p.burst != 0 {
				return &InvalidError{Field: "burst", Value: "given twice", Want: "one burst"}
			}
			n, err := strconv.ParseInt(words[0], 10, 64)
			if err != nil || n < 1 || !allDigits(words[0]) {
				return &InvalidError{Field: "burst", Value: strconv.Quote(words[0]), Want: "a whole number of at least 1"}
			}
			p.burst, words = n, words[1:]
			continue
		}
		a := algorithmNamed(word)
		if a != 0 && p.algorithm != 0 {
			return &InvalidError{Field: "algorithm", Value: strconv.Quote(word) + " after another", Want: "one algorithm"}
		}
		if a == 0 {
			return &InvalidError{Field: "option", Value: strconv.Quote(word), Want: "burst N, or one of " + strings.Join(algorithmNames[1:], ", ")}
		}
		p.algorithm = a
	}
	return nil
}

func (p *parsedLimit) limit() (Limit, error) {
	if p.algorithm == 0 {
		p.algorithm = AlgorithmTokenBucket
	}
	t := terms{Algorithm: algorithm.Name(p.algorithm), Capacity: p.count}
	if !t.IsBucket() {
		if p.burst != 0 {
			return Limit{}, &InvalidError{Field: "burst", Value: strconv.FormatInt(p.burst, 10), Want: "none: only buckets have a burst"}
		}
		if p.scale != 1 {
			return Limit{}, &InvalidError{Field: "count", Value: p.text, Want: "a whole number: only buckets count fractions"}
		}
	} else {
		t.Refill = p.count
		t.Capacity = (p.count + p.scale - 1) / p.scale
		if p.burst != 0 {
			t.Capacity = p.burst
		}
		if p.period > maxExact/p.scale {
			return Limit{}, &InvalidError{Field: "count", Value: p.text, Want: "fewer decimals, or a shorter period"}
		}
		p.period *= p.scale
	}
	t.Every = duration(p.period)
	return newLimit(t), nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func unitMicros(s string) int64 {
	for _, u := range units {
		if s == u.name {
			return u.micros
		}
		if slices.Contains(u.also, s) {
			return u.micros
		}
	}
	return 0
}

func algorithmNamed(word string) Algorithm {
	if word == "gcra" || word == "leaky-bucket" {
		return AlgorithmTokenBucket
	}
	for a := AlgorithmTokenBucket; int(a) < len(algorithmNames); a++ {
		if a.String() == word {
			return a
		}
	}
	return 0
}

// String is the text form of l, which [ParseLimit] reads back as an equal Limit; of a share
// ([Limit.Share]) as one of equal numbers.
func (l Limit) String() string {
	if l == Unlimited() {
		return "unlimited"
	}
	if err := l.Validate(); err != nil {
		return "invalid limit"
	}
	if l.rule.Name == "" {
		return text(&l.rule.Terms)
	}
	return l.rule.Name + "=" + text(&l.rule.Terms)
}

// text is the text form without a name.
func text(t *terms) string {
	b := make([]byte, 0, 32)
	count := t.Capacity
	if t.IsBucket() {
		count = t.Refill
	}
	b = strconv.AppendInt(b, count, 10)
	b = append(b, '/')
	b = appendPeriod(b, t.Every.Microseconds())
	if t.IsBucket() && t.Capacity != t.Refill {
		b = append(b, " burst "...)
		b = strconv.AppendInt(b, t.Capacity, 10)
	}
	if t.Algorithm != algorithm.TokenBucket {
		b = append(b, ' ')
		b = append(b, Algorithm(t.Algorithm).String()...)
	}
	return string(b)
}

// id is what state belongs to; see [Limit.ID].
func id(t *terms) string {
	switch {
	case t.ShareOf != "":
		return t.ShareOf
	case t.Name == "":
		return text(t)
	case t.Algorithm == algorithm.TokenBucket:
		return t.Name
	}
	b := append([]byte(t.Name), ' ')
	if !t.IsBucket() {
		b = append(appendPeriod(b, t.Every.Microseconds()), ' ')
	}
	return string(append(b, Algorithm(t.Algorithm).String()...))
}

// appendPeriod writes micros in the largest unit that divides it.
func appendPeriod(b []byte, micros int64) []byte {
	for _, u := range units {
		if micros%u.micros == 0 && micros > 0 {
			if n := micros / u.micros; n != 1 {
				b = strconv.AppendInt(b, n, 10)
			}
			return append(b, u.name...)
		}
	}
	return append(b, "0s"...)
}

// MarshalText returns the text form, or an error for an invalid limit.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil && l != Unlimited() {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads the text form, as [ParseLimit] does.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
