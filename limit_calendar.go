package headgate

import (
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Daily grants n in each day of a calendar: from midnight to midnight, in UTC unless [Limit.In]
// names a zone. RetryAfter and ResetAfter end with the day, which may have 23 or 25 hours. A start
// time can be booked in this window or the next ([Request.MaxWait]). If it would be later, the
// request is denied with [Never], unless another limit of the same TakeAll delays it.
func Daily(n int64) Limit { return calendar(n, algorithm.Day) }

// Weekly grants n in each week of a calendar, from Monday to Sunday; see [Daily].
func Weekly(n int64) Limit { return calendar(n, algorithm.Week) }

// Monthly grants n in each month of a calendar; see [Daily], [Limit.Anchored].
func Monthly(n int64) Limit { return calendar(n, algorithm.Month) }

// Yearly grants n in each year of a calendar; see [Daily], [Limit.AnchoredOn].
func Yearly(n int64) Limit { return calendar(n, algorithm.Year) }

func calendar(n int64, unit time.Duration) Limit {
	return newLimit(algorithm.Calendar(n, unit))
}

// In returns the calendar l in a time zone: UTC, or a name that [time.LoadLocation] knows, such as
// "Europe/Zurich". "Local" is not valid, because it differs between processes.
//
// The [Limit.ID] of a named limit contains neither the zone nor the anchor. If they change, the
// count of a key is kept if its last grant is in the current window of the new calendar. Otherwise
// the key has a fresh budget at once.
func (l Limit) In(zone string) Limit {
	return l.with(func(t *terms) { t.Zone = zone })
}

// Anchored returns the monthly calendar l with windows that begin on a day, from 1 to 31. In months
// without that day they begin on the last day.
func (l Limit) Anchored(day int) Limit {
	return l.with(func(t *terms) { t.Month, t.Day = 0, day })
}

// AnchoredOn returns the yearly calendar l with windows that begin on a date. In years without
// February 29, they begin on February 28.
func (l Limit) AnchoredOn(month time.Month, day int) Limit {
	return l.with(func(t *terms) { t.Month, t.Day = month, day })
}

// Bounds returns the beginnings of three windows of the calendar l: the one that contains t and the
// next two. For other limits they are zero.
func (l Limit) Bounds(t time.Time) (start, next, afterNext time.Time) {
	if !l.valid() || l.rule.Algorithm != algorithm.CalendarWindow {
		return start, next, afterNext
	}
	a, b, c := l.rule.Bounds(t.UnixMicro())
	return time.UnixMicro(a), time.UnixMicro(b), time.UnixMicro(c)
}
