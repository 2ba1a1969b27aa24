package replay

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// latest is the last time that a [headgate.Request] can carry, in microseconds.
const latest = 9_007_199_253 * 1_000_000

// timestamps reads the times of log lines. Consecutive lines often have the same one, so it
// keeps the last text that it read.
type timestamps struct {
	text [40]byte
	n    int
	at   int64
}

// read returns the time in b, in microseconds since the Unix epoch. ok is false if b is not a
// time, or one before 1970 or after 2255.
func (c *timestamps) read(b []byte) (at int64, ok bool) {
	if len(b) == c.n && string(b) == string(c.text[:c.n]) && c.n > 0 {
		return c.at, true
	}
	at, ok = readTime(b)
	if !ok || at < 1 || at >= latest {
		return 0, false
	}
	if len(b) <= len(c.text) {
		c.n, c.at = copy(c.text[:], b), at
	}
	return at, true
}

// readTime reads the Common Log Format (17/Dec/2025:09:03:01 +0000), RFC 3339
// with its relatives (a space for the T, a comma before the fraction, no zone for
// UTC), a number since the Unix epoch in s, ms, us or ns, and the times of mail and of C.
func readTime(b []byte) (at int64, ok bool) {
	s := stamp{rest: b}
	switch {
	case len(b) > 11 && b[2] == '/' && b[11] == ':':
		s.day, s.month, s.year = s.number(2, '/'), s.monthName(), s.number(4, ':')
	case len(b) > 10 && (b[4] == '-' || b[4] == '/') && b[7] == b[4]:
		s.year, s.month, s.day = s.number(4, b[4]), s.number(2, b[4]), s.number(2, 0)
		if len(s.rest) == 0 || s.rest[0] != 'T' && s.rest[0] != 't' && s.rest[0] != ' ' {
			return 0, false
		}
		s.rest = s.rest[1:]
	case len(b) > 20 && (b[3] == ',' || b[3] == ' '):
		return readNamedDay(b)
	default:
		return readEpoch(b)
	}
	hour, minute, second := s.number(2, ':'), s.number(2, ':'), s.number(2, 0)
	micros := s.fraction()
	east := s.zone()
	day := time.Date(s.year, time.Month(s.month), s.day, 0, 0, 0, 0, time.UTC)
	isDate := day.Day() == s.day && day.Month() == time.Month(s.month)
	if s.bad || len(s.rest) > 0 || !isDate || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	sec := day.Unix() + int64(hour*3600+minute*60+second-east)
	return sec*1_000_000 + int64(micros), true
}

// stamp is the text of a time, read from left to right.
type stamp struct {
	rest             []byte
	bad              bool
	year, month, day int
}

// number reads n digits, and the byte after them unless that is 0.
func (s *stamp) number(n int, after byte) (v int) {
	width := n
	if after != 0 {
		width++
	}
	if len(s.rest) < width || after != 0 && s.rest[n] != after {
		s.bad = true
		return 0
	}
	for _, c := range s.rest[:n] {
		if c < '0' || c > '9' {
			s.bad = true
		}
		v = v*10 + int(c-'0')
	}
	s.rest = s.rest[width:]
	return v
}

// monthName reads an English month of three letters and the slash after it.
func (s *stamp) monthName() int {
	if len(s.rest) < 4 || s.rest[3] != '/' {
		s.bad = true
		return 0
	}
	name := s.rest[:3]
	s.rest = s.rest[4:]
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if strings.EqualFold(names[i:i+3], string(name)) {
			return i/3 + 1
		}
	}
	s.bad = true
	return 0
}

// fraction reads a fraction of a second, if there is one, as whole microseconds.
func (s *stamp) fraction() (micros int) {
	if len(s.rest) == 0 || s.rest[0] != '.' && s.rest[0] != ',' {
		return 0
	}
	i, unit := 1, 100_000
	for ; i < len(s.rest) && '0' <= s.rest[i] && s.rest[i] <= '9'; i++ {
		micros += int(s.rest[i]-'0') * unit
		unit /= 10
	}
	s.bad = s.bad || i == 1
	s.rest = s.rest[i:]
	return micros
}

// zone reads Z, +0000 or +00:00, with or without a space before it, as seconds
// east of Greenwich. No zone is UTC.
func (s *stamp) zone() (east int) {
	if len(s.rest) > 0 && s.rest[0] == ' ' {
		s.rest = s.rest[1:]
	}
	if len(s.rest) == 0 {
		return 0
	}
	if zone := string(s.rest); zone == "UTC" || zone == "GMT" {
		s.rest = nil
		return 0
	}
	sign := s.rest[0]
	s.rest = s.rest[1:]
	if sign == 'Z' || sign == 'z' {
		return 0
	}
	hours := s.number(2, 0)
	if len(s.rest) > 0 && s.rest[0] == ':' {
		s.rest = s.rest[1:]
	}
	minutes := s.number(2, 0)
	s.rest = bytes.TrimSuffix(s.rest, []byte(" UTC")) // as Go prints it
	s.bad = s.bad || sign != '+' && sign != '-' || hours > 23 || minutes > 59
	if east = hours*3600 + minutes*60; sign == '-' {
		east = -east
	}
	return east
}

// readNamedDay reads times that begin with the day of the week.
func readNamedDay(b []byte) (at int64, ok bool) {
	for _, layout := range []string{
		"Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2006 15:04:05 UTC", time.RFC1123Z,
		time.ANSIC, "Mon Jan _2 15:04:05 UTC 2006",
	} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			return t.UnixMicro(), true
		}
	}
	return 0, false
}

// readEpoch reads seconds since the Unix epoch, exact to the microsecond. Numbers
// too large for that are milli-, micro- or nanoseconds. Numbers before 1973 are not read as
// times: they are more likely durations.
func readEpoch(b []byte) (at int64, ok bool) {
	whole, i := uint64(0), 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if whole >= 1e18 {
			return 0, false
		}
		whole = whole*10 + uint64(b[i]-'0')
	}
	if i == 0 {
		return 0, false
	}
	s := stamp{rest: b[i:]}
	micros := s.fraction()
	if s.bad || len(s.rest) > 0 {
		return readExponent(b)
	}
	switch {
	case whole < 1e8:
		return 0, false
	case whole < 1e11:
		return int64(whole)*1_000_000 + int64(micros), true
	case whole < 1e14:
		return int64(whole)*1000 + int64(micros)/1000, true
	case whole < 1e17:
		return int64(whole), true
	default:
		return int64(whole / 1000), true
	}
}

// readExponent reads seconds written like 1.7658e+09, which some encoders do.
func readExponent(b []byte) (at int64, ok bool) {
	if len(b) > 40 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || v < 1e8 || v >= 1e11 {
		return 0, false
	}
	return int64(v * 1e6), true
}
