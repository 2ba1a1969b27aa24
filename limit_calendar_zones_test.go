package headgate

import (
	"testing"
	"time"
)

// Some zones have days of 23 and 25 hours, a change of half an hour, a day that was skipped (Apia),
// midnights that do not exist (Sao Paulo, Beirut, Havana) or come twice (St Johns, Azores), and
// changes of the offset itself.
var calendarZones = []string{
	"UTC", "Europe/Zurich", "Europe/London", "Europe/Moscow", "America/New_York",
	"America/St_Johns",
	"America/Sao_Paulo", "America/Havana", "America/Asuncion", "America/Caracas",
	"Africa/Casablanca", "Asia/Beirut", "Asia/Gaza", "Asia/Kathmandu", "Asia/Kolkata",
	"Asia/Pyongyang", "Atlantic/Azores", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham",
}

// A slow and obvious search finds where windows begin: each quarter of an hour in 30 years, if the
// date that clocks show is later than all before, and one of its dates is that of the anchor.
func TestCalendarsAsClocksShow(t *testing.T) {
	for _, name := range calendarZones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			days := daysShown(zone)
			for l, begins := range map[Limit]func(date time.Time) bool{
				Daily(9): func(time.Time) bool { return true },
				Weekly(9): func(d time.Time) bool {
					return d.Weekday() == time.Monday
				},
				Monthly(9):              func(d time.Time) bool { return d.Day() == 1 },
				Monthly(9).Anchored(17): func(d time.Time) bool { return d.Day() == 17 },
				Monthly(9).Anchored(31): func(d time.Time) bool {
					return d.AddDate(0, 0,
						1).Day() == 1
				},
				Yearly(9).AnchoredOn(time.February, 29): func(d time.Time) bool {
					return d.Month() == time.February && d.AddDate(0, 0, 1).Month() == time.March
				},
				Yearly(9).AnchoredOn(time.April, 6): func(d time.Time) bool {
					return d.Month() == time.April && d.Day() == 6
				},
			} {
				compareBounds(t, l.In(name), windowsShown(days, begins))
			}
		})
	}
}

// dayShown is a date, and the moment at which clocks show it or a later one.
type dayShown struct{ at, date time.Time }

// daysShown returns the days from 1995 to 2025.
func daysShown(zone *time.Location) []dayShown {
	var days []dayShown
	at := time.Date(1994, 12, 30, 0, 0, 0, 0, time.UTC)
	shown := dateShown(at, zone)
	for ; at.Year() < 2026; at = at.Add(15 * time.Minute) {
		for now := dateShown(at, zone); shown.Before(now); {
			shown = shown.AddDate(0, 0, 1)
			days = append(days, dayShown{at, shown})
		}
	}
	return days
}

// windowsShown returns the moments at which a window begins.
func windowsShown(days []dayShown, begins func(date time.Time) bool) []time.Time {
	var starts []time.Time
	for _, d := range days {
		if n := len(starts); begins(d.date) && (n == 0 || starts[n-1] != d.at) {
			starts = append(starts, d.at)
		}
	}
	return starts
}

// dateShown is the date that clocks show, as midnight in UTC.
func dateShown(at time.Time, zone *time.Location) time.Time {
	year, month, day := at.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// compareBounds asks at the first and at the last microsecond of each window.
func compareBounds(t *testing.T, l Limit, starts []time.Time) {
	if len(starts) < 30 {
		t.Fatalf("%s: %d windows in 30 years", l, len(starts))
	}
	for i := range starts[2:] {
		for _, at := range []time.Time{starts[i], starts[i+1].Add(-time.Microsecond)} {
			start, next, last := l.Bounds(at)
			if !start.Equal(starts[i]) || !next.Equal(starts[i+1]) || !last.Equal(starts[i+2]) {
				t.Fatalf("%s at %s: %s, %s, %s; want %s, %s, %s", l, at, start.UTC(), next.UTC(),
					last.UTC(), starts[i], starts[i+1], starts[i+2])
			}
		}
	}
}
