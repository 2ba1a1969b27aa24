package limittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// almanac is when the clocks of a time zone first showed each date, found the slow way: by looking
// at them again and again. at is in microseconds, and date is such as 21000131.
type almanac struct {
	at   []int64
	date []int
}

// The almanacs of the model go from the one year to the other, where clocks are set at whole
// quarters of an hour.
const firstYear, lastYear, quarter = 2098, 2150, 900

var almanacs sync.Map // a zone -> func() *almanac

func almanacOf(zone string) *almanac {
	once, _ := almanacs.LoadOrStore(zone, sync.OnceValue(func() *almanac {
		return newAlmanac(zone, firstYear, lastYear, quarter)
	}))
	f, _ := once.(func() *almanac)
	return f()
}

// newAlmanac looks at the clocks of a zone, near midnight in steps of so many seconds.
func newAlmanac(zone string, from, to int, step int64) *almanac {
	where, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	a := &almanac{}
	end := time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC).Unix(); at < end; {
		clock := time.Unix(at, 0).In(where)
		if date := number(clock); len(a.date) == 0 || date > a.date[len(a.date)-1] {
			a.at, a.date = append(a.at, at*1e6), append(a.date, date)
		}
		switch hour := clock.Hour(); {
		case hour == 0 || hour >= 22:
			at += step
		case hour < 15:
			at += 6 * 3600
		default:
			at += 1800
		}
	}
	return a
}

func number(t time.Time) int { return 10_000*t.Year() + 100*int(t.Month()) + t.Day() }

// bounds are where the windows of a calendar begin, in microseconds. It reads the text of l.
func (a *almanac) bounds(l headgate.Limit) (all []int64) {
	_, text, _ := strings.Cut("="+l.String(), "=")
	if i := strings.LastIndex(text, "="); i >= 0 {
		text = text[i+1:]
	}
	anchor, fields := "1", strings.Fields(text)
	_, unit, _ := strings.Cut(fields[0], "/")
	if i := slices.Index(fields, "anchor"); i >= 0 {
		anchor = fields[i+1]
	} else if unit == "year" {
		anchor = "01-01"
	}
	for i := 1; i < len(a.at); i++ {
		before := day(a.date[i-1])
		for d := day(a.date[i]); d.After(before); d = d.AddDate(0, 0, -1) {
			if begins(d, unit, anchor) { // or a window that clocks skip does
				all = append(all, a.at[i])
				break
			}
		}
	}
	return all
}

func day(date int) time.Time {
	return time.Date(date/10_000, time.Month(date/100%100), date%100, 0, 0, 0, 0, time.UTC)
}

// begins reports whether a window begins on the day d.
func begins(d time.Time, unit, anchor string) bool {
	month, days, of := strings.Cut(anchor, "-")
	if !of {
		days = anchor
	}
	n, _ := strconv.Atoi(days)
	last := d.AddDate(0, 0, 1).Day() == 1
	switch unit {
	case "day":
		return true
	case "week":
		return d.Weekday() == time.Monday
	case "month":
		return d.Day() == n || last && d.Day() < n
	default:
		return d.Format("01") == month && (d.Day() == n || last && d.Day() < n)
	}
}

var bounds sync.Map // a limit -> []int64

// boundsOf are where the windows of l begin in the years of the model.
func boundsOf(l headgate.Limit) []int64 {
	if known, ok := bounds.Load(l); ok {
		all, _ := known.([]int64)
		return all
	}
	all := almanacOf(zoneOf(l)).bounds(l)
	bounds.Store(l, all)
	return all
}

func zoneOf(l headgate.Limit) string {
	_, zone, ok := strings.Cut(l.String(), " tz ")
	if !ok {
		return "UTC"
	}
	return strings.Fields(zone)[0]
}

// windowStart is where the fixed or calendar window of t begins.
func windowStart(l headgate.Limit, t int64) int64 { return windowBound(l, t, 0) }

// windowBound is where the window of t begins, or the one n windows later.
func windowBound(l headgate.Limit, t int64, n int) int64 {
	if l.Algorithm() != headgate.AlgorithmCalendarWindow {
		period := l.Period().Microseconds()
		return t - t%period + int64(n)*period
	}
	all := boundsOf(l)
	return all[sort.Search(len(all), func(i int) bool { return all[i] > t })-1+n]
}

// randomCalendar is a calendar of any unit, in one of a few zones.
func randomCalendar(r *rand.Rand) headgate.Limit {
	n := randomCount(r)
	l := []headgate.Limit{headgate.Daily(n), headgate.Weekly(n), headgate.Monthly(n),
		headgate.Monthly(n).Anchored(1 + r.IntN(31)), headgate.Yearly(n),
		headgate.Yearly(n).AnchoredOn(time.Month(1+r.IntN(12)), 1+r.IntN(28)),
		headgate.Yearly(n).AnchoredOn(time.February, 29)}[r.IntN(7)]
	return l.In([]string{"UTC", "Europe/Zurich", "Australia/Lord_Howe"}[r.IntN(3)])
}

// withCapacity is a calendar like l for n.
func withCapacity(l headgate.Limit, n int64) headgate.Limit {
	_, form, _ := strings.Cut(l.Named("").String(), "/")
	l, err := headgate.ParseLimit(fmt.Sprintf("%d/%s", n, form))
	if err != nil {
		panic(err)
	}
	return l
}
