package algorithm

import (
	"sync"
	"sync/atomic"
	"time"
)

// The units of a calendar, as the Every of its terms: the longest by the calendar.
const (
	Day   = 24 * time.Hour
	Week  = 7 * Day
	Month = 31 * Day
	Year  = 366 * Day
)

// calendar divides time into the days, weeks, months or years of a time zone. A window begins at
// the first moment at which clocks there show its date, or a later one if they skip it.
type calendar struct {
	unit     time.Duration
	zone     *time.Location
	month    time.Month // with day, the anchor
	day      int
	computed atomic.Pointer[bounds] // most recently
}

// bounds are where a window begins, where the next one does, and the one after that.
type bounds [3]int64

// newCalendar returns the calendar of terms that were checked.
func newCalendar(t *Terms) *calendar {
	zone, _ := loadZone(t.Zone)
	return &calendar{unit: t.Every, zone: zone, month: t.Month, day: t.Day}
}

var zones sync.Map // that were loaded, by name

// loadZone loads each zone once: a zone that was checked is there later, also if no file can be
// opened then.
func loadZone(name string) (*time.Location, error) {
	if zone, found := zones.Load(name); found {
		return zone.(*time.Location), nil //nolint:forcetypeassert // stored below
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, zone)
	}
	return zone, err
}

// window returns the start and the end of the window that now is in.
func (c *calendar) window(now int64) (start, end int64) {
	b := c.computed.Load()
	switch {
	case b == nil || now < b[0] || now >= b[2]:
		b = c.around(now)
		c.computed.Store(b)
	case now >= b[1]:
		return b[1], b[2]
	}
	return b[0], b[1]
}

// Bounds returns where the window of a calendar that now is in begins, where the next one does, and
// the one after that.
func (l *Rule) Bounds(now int64) (start, next, afterNext int64) {
	b := l.calendar.computed.Load()
	if b == nil || now < b[0] || now >= b[1] {
		b = l.calendar.around(now)
		l.calendar.computed.Store(b)
	}
	return b[0], b[1], b[2]
}

// unknown reports whether a start time that is booked at now is after all boundaries that are sent
// to Redis. So that both stores decide alike, none is booked there.
func (l *Rule) unknown(start, now int64) bool {
	if l.calendar == nil {
		return false
	}
	_, _, end := l.Bounds(now)
	return start >= end
}

// around computes the bounds at now, from 0 to MaxExact. Where clocks are set back past a boundary,
// the window goes on: their date is of the window before for a while.
func (c *calendar) around(now int64) *bounds {
	n := c.number(time.UnixMicro(now).In(c.zone).Date())
	start := c.start(n)
	b := bounds{start, start}
	for ; b[1] == b[0] || b[1] <= now; n++ { // a window is empty if clocks skip it
		b[0], b[1] = b[1], c.start(n+1)
	}
	for b[2] = b[1]; b[2] == b[1]; n++ {
		b[2] = c.start(n + 1)
	}
	return &bounds{max(b[0], 0), min(b[1], MaxExact), min(b[2], MaxExact)}
}

// number counts the windows up to the one of a date.
func (c *calendar) number(year int, month time.Month, day int) int {
	switch c.unit {
	case Year:
		if month < c.month || month == c.month && day < c.anchorDay(year, month) {
			year--
		}
		return year
	case Month:
		n := 12*year + int(month) - 1
		if day < c.anchorDay(year, month) {
			n--
		}
		return n
	default:
		days := int(midnight(year, month, day) / (24 * 3600))
		if c.unit == Week {
			return (days + 3) / 7 // January 1, 1970 is a Thursday
		}
		return days
	}
}

// start is the first microsecond of window n.
func (c *calendar) start(n int) int64 {
	switch c.unit {
	case Year:
		return c.first(n, c.month, c.anchorDay(n, c.month))
	case Month:
		year, month := n/12, time.Month(n%12+1)
		return c.first(year, month, c.anchorDay(year, month))
	case Week:
		return c.first(1970, time.January, 1+7*n-3)
	default:
		return c.first(1970, time.January, 1+n)
	}
}

// anchorDay is the day of the anchor in a month: its last day if it lacks that of the anchor.
func (c *calendar) anchorDay(year int, month time.Month) int {
	return min(c.day, time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

// first is the first microsecond at which clocks show a date, or a later one. [time.Date] does not
// say which it returns if there is no midnight or there are two.
func (c *calendar) first(year int, month time.Month, day int) int64 {
	midnight := midnight(year, month, day)
	for at := midnight - 48*3600; ; { // in no zone are clocks set by more
		t := time.Unix(at, 0).In(c.zone)
		_, offset := t.Zone()
		at = max(at, midnight-int64(offset))
		_, end := t.ZoneBounds()
		switch {
		case end.IsZero() || at < end.Unix():
			return at * 1e6
		case end.After(t):
			at = end.Unix()
		case at < t.Unix()+3600: // on December 31 of a leap year, the bounds may end before t
			return at * 1e6
		default:
			at = t.Unix() + 3600
		}
	}
}

// midnight is when a date begins in UTC, in seconds since the Unix epoch.
func midnight(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
}
