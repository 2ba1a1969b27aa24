package algorithm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	utc      = "UTC"
	wantZone = "UTC, or a name that this system knows, such as Europe/Zurich"
)

// Fault says which input was wrong, and what would be accepted.
type Fault struct{ Field, Value, Want string }

// Calendar returns the terms of a calendar in UTC without an anchor.
func Calendar(n int64, unit time.Duration) Terms {
	t := Terms{Algorithm: CalendarWindow, Capacity: n, Every: unit, Zone: utc}
	switch unit {
	case Month:
		t.Day = 1
	case Year:
		t.Month, t.Day = time.January, 1
	}
	return t
}

// CalendarFault returns the first fault in the zone and the anchor of t, or nil.
func (t *Terms) CalendarFault() *Fault {
	if t.Algorithm != CalendarWindow {
		if t.Zone != "" || t.Month != 0 || t.Day != 0 {
			return &Fault{"algorithm", "no calendar", "a calendar, which has a zone and an anchor"}
		}
		return nil
	}
	if _, err := loadZone(t.Zone); err != nil || t.Zone == "" || t.Zone == "Local" {
		return &Fault{"time zone", strconv.Quote(t.Zone), wantZone}
	}
	date := time.Date(2024, t.Month, t.Day, 0, 0, 0, 0, time.UTC) // a year that has every date
	switch {
	case t.Every == Month && (t.Month != 0 || t.Day < 1 || t.Day > 31),
		t.Every == Year && (t.Month < 1 || date.Month() != t.Month || date.Day() != t.Day),
		t.Every <= Week && (t.Month != 0 || t.Day != 0):
		return t.anchorFault(t.anchor())
	}
	return nil
}

// anchorFault returns the fault of an anchor that t cannot have.
func (t *Terms) anchorFault(anchor string) *Fault {
	want := "none: weeks begin on Monday, and only months and years have an anchor"
	switch t.Every {
	case Month:
		want = "a day from 1 to 31"
	case Year:
		want = "a month and a day, such as 04-17"
	}
	return &Fault{"anchor", anchor, want}
}

func (t *Terms) anchor() string {
	if t.Month == 0 {
		return strconv.Itoa(t.Day)
	}
	return fmt.Sprintf("%02d-%02d", int(t.Month), t.Day)
}

// Unit returns the word for the unit of a calendar, or "".
func (t *Terms) Unit() string {
	if t.Algorithm != CalendarWindow {
		return ""
	}
	return map[time.Duration]string{Day: "day", Week: "week", Month: "month", Year: "year"}[t.Every]
}

// CalendarText is the text form of a calendar without a name. A day or a week has a zone there,
// because it would be a token bucket without one.
func (t *Terms) CalendarText() string {
	text := strconv.FormatInt(t.Capacity, 10) + "/" + t.Unit()
	if t.Zone != utc || t.Every <= Week {
		text += " tz " + t.Zone
	}
	if t.Day > 1 || t.Month > time.January {
		text += " anchor " + t.anchor()
	}
	return text
}

const calendarWindow = "calendar-window"

// IsCalendar reports whether a limit with a period and these words behind it is a calendar.
func IsCalendar(period string, words []string) bool {
	return period == "month" || period == "year" || slices.ContainsFunc(words, func(w string) bool {
		return w == "tz" || w == "anchor" || w == calendarWindow
	})
}

// ParseCalendar reads the text form of a calendar, count/period and the words behind it.
func ParseCalendar(count, period string, words []string) (Terms, *Fault) {
	n, err := strconv.ParseInt(count, 10, 64)
	unit := map[string]time.Duration{"d": Day, "day": Day, "w": Week, "week": Week,
		"month": Month, "year": Year}[period]
	switch {
	case err != nil || n < 1 || n > MaxExact:
		return Terms{}, &Fault{"count", strconv.Quote(count),
			"a whole number from 1 to " + strconv.FormatInt(MaxExact, 10) + " for a calendar"}
	case unit == 0:
		return Terms{}, &Fault{"period", strconv.Quote(period),
			"day, week, month or year for a calendar"}
	}
	t, zone, anchor := Calendar(n, unit), "", ""
	for ; len(words) > 0; words = words[1:] {
		word, to := words[0], &zone
		switch word {
		case calendarWindow:
			continue
		case "anchor":
			to = &anchor
		case "tz":
		default:
			return t, &Fault{"option", strconv.Quote(word), "tz ZONE or anchor DAY for a calendar"}
		}
		if *to != "" || len(words) == 1 {
			return t, &Fault{word, "missing its value, or given twice", "one " + word + " VALUE"}
		}
		*to, words = words[1], words[1:]
	}
	t.Zone = cmp.Or(zone, utc)
	return t, t.parseAnchor(anchor)
}

// parseAnchor reads 17 of a month or 04-17 of a year.
func (t *Terms) parseAnchor(text string) *Fault {
	month, day, date := strings.Cut(text, "-")
	if !date {
		month, day = "0", text
	}
	m, err := strconv.ParseUint(month, 10, 16)
	d, err2 := strconv.ParseUint(day, 10, 16)
	switch {
	case text == "":
		return nil
	case err != nil || err2 != nil:
		return t.anchorFault(strconv.Quote(text))
	}
	t.Month, t.Day = time.Month(m), int(d)
	return nil
}
