package headgate

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestCalendarTexts(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Limit
		canon string // "": the text itself
		id    string // of the limit named api
	}{
		{"1000/month", Monthly(1000), "", "api month calendar-window"},
		{"1000/month tz Europe/Zurich anchor 17",
			Monthly(1000).In("Europe/Zurich").Anchored(17), "", "api month calendar-window"},
		{"5/month anchor 31 tz Asia/Tokyo", Monthly(5).Anchored(31).In("Asia/Tokyo"),
			"5/month tz Asia/Tokyo anchor 31", ""},
		{"5/month anchor 1 tz UTC", Monthly(5), "5/month", ""},
		{"1000/day tz America/New_York", Daily(1000).In("America/New_York"), "",
			"api day calendar-window"},
		{"5/d tz UTC", Daily(5), "5/day tz UTC", ""},
		{"5/w calendar-window", Weekly(5), "5/week tz UTC", "api week calendar-window"},
		{"5/year", Yearly(5), "", "api year calendar-window"},
		{"5/year anchor 2-29", Yearly(5).AnchoredOn(time.February, 29), "5/year anchor 02-29", ""},
		{"5/year anchor 04-01", Yearly(5).AnchoredOn(time.April, 1), "", ""},
		{"5/day", PerDay(5), "5/d", "api"}, // a token bucket, as without calendars
		{"5/week fixed-window", FixedWindow(5, 7*24*time.Hour), "5/w fixed-window", ""},
		{"9007199254740991/year", Yearly(maxExact), "", ""},
	} {
		l, err := ParseLimit(c.text)
		if c.canon == "" {
			c.canon = c.text
		}
		if err != nil || l != c.want || l.String() != c.canon {
			t.Errorf("%q is %v, %v; want %v, %q", c.text, l, err, c.want, c.canon)
		}
		if id := l.Named("api").ID(); c.id != "" && id != c.id {
			t.Errorf("%q has the ID %q with a name; want %q", c.text, id, c.id)
		}
		for _, l := range []Limit{l, l.Named("p")} {
			var read Limit
			text, err := l.MarshalText()
			if err != nil || read.UnmarshalText(text) != nil || read != l {
				t.Errorf("%q, %v, is read back as %v", text, err, read)
			}
		}
	}
}

func TestCalendarsThatAreNotValid(t *testing.T) {
	const zone = "; want UTC, or a name that this system knows, such as Europe/Zurich"
	const date = "; want a month and a day, such as 04-17"
	for _, c := range []struct {
		limit Limit
		want  string
	}{
		{Daily(5).In("Local"), `time zone is "Local"` + zone},
		{Daily(5).In(""), `time zone is ""` + zone},
		{Monthly(5).Anchored(32), "anchor is 32; want a day from 1 to 31"},
		{Monthly(5).AnchoredOn(time.April, 1), "anchor is 04-01; want a day from 1 to 31"},
		{Yearly(5).AnchoredOn(time.February, 30), "anchor is 02-30" + date},
		{Yearly(5).AnchoredOn(13, 1), "anchor is 13-01" + date},
		{Weekly(5).Anchored(3), "anchor is 3; want none: weeks begin on Monday, " +
			"and only months and years have an anchor"},
		{Weekly(5).Burst(7), "burst is 7; want none: only buckets have a burst"},
		{Weekly(0), `count is 0; want at least 1, or "0/d fixed-window" to deny all`},
		{PerDay(5).In("UTC"), "algorithm is no calendar; " +
			"want a calendar, which has a zone and an anchor"},
	} {
		if err := c.limit.Validate(); err == nil || err.Error() != "headgate: "+c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
	if l := (Limit{}).In("UTC").Anchored(3).AnchoredOn(3, 3); l != (Limit{}) {
		t.Errorf("the zero Limit becomes %v", l)
	}
}

// A share grants less in each window. If it would grant less than one, its window is a fixed one
// that is longer.
func TestShareOfACalendar(t *testing.T) {
	l := Monthly(10).In("Europe/Zurich").Anchored(17)
	for n, want := range map[int]string{
		1: "10/month tz Europe/Zurich anchor 17", 3: "3/month tz Europe/Zurich anchor 17",
		25: "1/93d fixed-window",
	} {
		if s := l.Share(n); s.String() != want || s.ID() != l.ID() {
			t.Errorf("share of %d: %s, ID %s; want %s", n, s, s.ID(), want)
		}
	}
}

// If the zone or the anchor of a named calendar changes, what is used counts until the next
// boundary.
func TestAnotherAnchorKeepsTheCount(t *testing.T) {
	m, plan := NewMemory(), Monthly(10).Named("plan")
	take := func(l Limit, month time.Month, day, hour int, cost int64) Decision {
		at := time.Date(2026, month, day, hour, 0, 0, 0, time.UTC)
		d, err := m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: cost, At: at})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	take(plan, 1, 20, 0, 4)
	for _, c := range []struct {
		limit            Limit
		month            time.Month
		day, hour        int
		remaining, reset int64
	}{
		{plan, 1, 20, 0, 6, 12 * 24},
		{plan.Anchored(17), 1, 20, 0, 6, 28 * 24},
		{plan.Anchored(17), 2, 10, 0, 6, 7 * 24},
		{plan.In("America/New_York"), 1, 31, 23, 6, 1 + 5},
		{plan.In("America/New_York"), 2, 1, 4, 6, 1},
		{plan.In("America/New_York"), 2, 1, 5, 10, 0},
		{plan.Anchored(20), 1, 20, 0, 6, 31 * 24},
		{plan.Anchored(21), 1, 21, 0, 10, 0},
	} {
		d := take(c.limit, c.month, c.day, c.hour, 0)
		if d.Remaining != c.remaining || d.ResetAfter != time.Duration(c.reset)*time.Hour {
			t.Errorf("%s on %d-%d at %d: remaining %d, reset after %s; want %d, %dh", c.limit,
				c.month, c.day, c.hour,
				d.Remaining, d.ResetAfter, c.remaining, c.reset)
		}
	}
}

func ExampleMonthly() {
	// What a customer may use in a billing month that begins on the 17th, at midnight in Zurich.
	plan := Monthly(1000).In("Europe/Zurich").Anchored(17).Named("plan")
	store := NewMemory()

	at := time.Date(2026, time.March, 20, 12, 0, 0, 0, time.UTC)
	d, err := store.Take(context.Background(), Request{Key: "customer:42", Limit: plan,
		Cost: 400, At: at})
	if err != nil {
		panic(err)
	}
	// Clocks are set forward in Zurich on March 29.
	fmt.Println(plan)
	fmt.Println(d.Remaining, "left until", at.Add(d.ResetAfter))
	// Output:
	// plan=1000/month tz Europe/Zurich anchor 17
	// 600 left until 2026-04-16 22:00:00 +0000 UTC
}
