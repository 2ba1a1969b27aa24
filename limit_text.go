package headgate

import (
	"cmp"
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
	wantLimit  = `a form like "100/m", "10/s burst 50", "5/15m sliding-log" or ` +
		`"api=1000/d fixed-window"`
	wantCount = "a whole or decimal number, at least 1 in 285 years and at most " +
		"9007199254740991, without exponent"
	wantPeriod = "a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w), " +
		"or month or year"
)

// ParseLimit reads the text form of a limit:
//
//	[name=]count/period [burst capacity] [algorithm]
//	[name=]count/unit [tz zone] [anchor day]
//
// The count is a whole number; for a bucket, it can be a decimal such as 1.5. The period is a unit
// (us, ms, s, m, h, d, w, or second, minute, hour, day, week), or whole numbers with units: 15m,
// 1h30m. The algorithm is token-bucket (also written gcra or leaky-bucket) unless given; the others
// are stepped, fixed-window, sliding-window and sliding-log. The capacity of a bucket is its count,
// rounded up, unless a burst is given.
//
// The second form is a calendar; see [Daily]. Its unit is day, week, month or year. A day or a week
// needs a zone, such as tz UTC; a month or a year is in UTC unless a zone is given. The anchor of a
// month is a day, such as 17, and the anchor of a year is a date, such as 04-17.
//
// Each error is an [InvalidError].
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
	count, period, ok := strings.Cut(append(fields, "")[0], "/")
	if !ok {
		return Limit{}, wrong(wholeLimit, strconv.Quote(text), wantLimit)
	}
	l, err := limitOf(count, period, fields[1:])
	name = strings.TrimSpace(name)
	if err == nil && named && name == "" {
		err = wrong("limit name", "empty", "a name before '='")
	}
	if l = l.Named(name); err == nil {
		err = l.Validate()
	}
	if err != nil {
		return Limit{}, err
	}
	return l, nil
}

func limitOf(count, period string, options []string) (Limit, error) {
	if algorithm.IsCalendar(period, options) {
		t, fault := algorithm.ParseCalendar(count, period, options)
		if fault != nil {
			return Limit{}, (*InvalidError)(fault)
		}
		return newLimit(t), nil
	}
	var p parsedLimit
	err := cmp.Or(p.parseCount(count), p.parsePeriod(period), p.parseOptions(options))
	if err != nil {
		return Limit{}, err
	}
	return p.limit()
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
	if err != nil || n > maxExact || !allDigits(strings.TrimPrefix(digits, "-")) ||
		whole == "" || point && fraction == "" || len(fraction) > 9 {
		return wrong("count", strconv.Quote(s), wantCount)
	}
	if n < 0 {
		return wrong("count", s, "more than 0")
	}
	p.text, p.scale = s, 1
	for range fraction {
		p.scale *= 10
	}
	p.count, p.scale = algorithm.Fraction(n, p.scale)
	return nil
}

func (p *parsedLimit) parsePeriod(s string) error {
	p.period = unitMicros(s)
	for rest, more := s, p.period == 0; more; more = rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		letters := digits + strings.IndexAny(rest[digits:]+"0", "0123456789")
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		u := unitMicros(rest[digits:letters])
		if u == 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
			return wrong("period", strconv.Quote(s), wantPeriod)
		}
		hi, lo := bits.Mul64(uint64(n), uint64(u))
		if err != nil || hi != 0 || lo > maxExact || p.period+int64(lo) > maxExact {
			return wrong("period", strconv.Quote(s), "at most 285 years")
		}
		p.period += int64(lo)
		rest = rest[letters:]
	}
	if p.period == 0 {
		return wrong("period", strconv.Quote(s), "at least 1us")
	}
	return nil
}

func (p *parsedLimit) parseOptions(words []string) error {
	for len(words) > 0 {
		word, rest := words[0], words[1:]
		a := Algorithm(slices.Index(algorithmNames[1:], word) + 1)
		if word == "gcra" || word == "leaky-bucket" {
			a = AlgorithmTokenBucket
		}
		switch {
		case word == "burst" && len(rest) == 0:
			return wrong("burst", "missing its number", `"burst" followed by a whole number`)
		case word == "burst" && p.burst != 0:
			return wrong("burst", "given twice", "one burst")
		case word == "burst":
			n, err := strconv.ParseInt(rest[0], 10, 64)
			if err != nil || n < 1 || !allDigits(rest[0]) {
				return wrong("burst", strconv.Quote(rest[0]), "a whole number of at least 1")
			}
			p.burst, rest = n, rest[1:]
		case a == 0:
			names := strings.Join(algorithmNames[1:], ", ")
			return wrong("option", strconv.Quote(word), "burst N, or one of "+names)
		case p.algorithm != 0:
			return wrong("algorithm", strconv.Quote(word)+" after another", "one algorithm")
		default:
			p.algorithm = a
		}
		words = rest
	}
	return nil
}

func (p *parsedLimit) limit() (Limit, error) {
	name := algorithm.Name(cmp.Or(p.algorithm, AlgorithmTokenBucket))
	t := terms{Algorithm: name, Capacity: p.count}
	switch {
	case t.IsBucket() && p.period > maxExact/p.scale:
		return Limit{}, wrong("count", p.text, "fewer decimals, or a shorter period")
	case t.IsBucket():
		t.Refill, t.Capacity = p.count, cmp.Or(p.burst, (p.count+p.scale-1)/p.scale)
		p.period *= p.scale
	case p.burst != 0:
		return Limit{}, invalid("burst", p.burst, "none: only buckets have a burst")
	case p.scale != 1:
		return Limit{}, wrong("count", p.text, "a whole number: only buckets count fractions")
	}
	t.Every = duration(p.period)
	return newLimit(t), nil
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func unitMicros(s string) int64 {
	for _, u := range units {
		if s == u.name || slices.Contains(u.also, s) {
			return u.micros
		}
	}
	return 0
}

// String returns the text form of l. [ParseLimit] reads it back as an equal Limit. The text of a
// share ([Limit.Share]) is read back as a Limit with equal numbers.
func (l Limit) String() string {
	switch {
	case l == Unlimited():
		return "unlimited"
	case !l.valid():
		return "invalid limit"
	case l.rule.Name == "":
		return text(&l.rule.Terms)
	}
	return l.rule.Name + "=" + text(&l.rule.Terms)
}

// text is the text form without a name.
func text(t *terms) string {
	if t.Algorithm == algorithm.CalendarWindow {
		return t.CalendarText()
	}
	count, burst, suffix := t.Capacity, "", ""
	if t.IsBucket() {
		count = t.Refill
	}
	if count != t.Capacity {
		burst = " burst " + strconv.FormatInt(t.Capacity, 10)
	}
	if t.Algorithm != algorithm.TokenBucket {
		suffix = " " + Algorithm(t.Algorithm).String()
	}
	return strconv.FormatInt(count, 10) + "/" + periodText(t) + burst + suffix
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
	case t.IsBucket():
		return t.Name + " " + Algorithm(t.Algorithm).String()
	}
	period := t.Unit()
	if period == "" {
		period = periodText(t)
	}
	return t.Name + " " + period + " " + Algorithm(t.Algorithm).String()
}

// periodText writes the period in the largest unit that divides it.
func periodText(t *terms) string {
	micros := t.Every.Microseconds()
	for _, u := range units {
		if n := micros / u.micros; micros%u.micros == 0 && n > 1 {
			return strconv.FormatInt(n, 10) + u.name
		} else if micros == u.micros {
			return u.name
		}
	}
	return "0s"
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
	if err == nil {
		*l = parsed
	}
	return err
}
