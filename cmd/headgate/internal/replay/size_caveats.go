package replay

import (
	"fmt"
	"strings"
	"time"
)

// text returns the period as it is written.
func (f family) text() Period { return Period(time.Duration(f.period) * time.Microsecond) }

// caveats fills what the logs cannot say.
func (s *sizing) caveats() {
	r := s.report
	caveat := func(id, format string, a ...any) {
		r.Caveats = append(r.Caveats, Caveat{id, fmt.Sprintf(format, a...)})
	}
	if gap := s.gap(); gap != nil {
		caveat("gap", "no requests from %s to %s UTC: the logs may not belong together",
			time.UnixMicro(gap.from).UTC().Format(time.DateTime),
			time.UnixMicro(gap.to).UTC().Format(time.DateTime))
	}
	caveat("span", "%s", s.spanText())
	if !s.times.fraction {
		caveat("whole-seconds", "all times are whole seconds, so requests of one second count "+
			"as made at once: bursts within a second may be smaller than they seem")
	}
	if r.Late > 0 {
		caveat("late", "%d requests are out of order by more than the reordering allows, "+
			"and are counted at a later time", r.Late)
	}
	if r.Keys < 10 {
		caveat("few-keys", "fewer than 10 keys: no key can be said to stand out")
	}
}

// gap returns the longest time without a request, if it is at least a day and half of the span.
func (s *sizing) gap() *pause {
	const day = int64(24 * time.Hour / time.Microsecond)
	if gap := s.times.gap; gap.long() >= max(day, (s.to-s.from)/2) {
		return &gap
	}
	return nil
}

// covered returns the span without such a gap, in microseconds.
func (s *sizing) covered() int64 {
	covered := s.to - s.from
	if gap := s.gap(); gap != nil {
		covered -= gap.long()
	}
	return covered
}

// spanText says for which periods the span is too short.
func (s *sizing) spanText() string {
	var short []string
	for _, f := range s.periods.families[:len(s.periods.needs)] {
		if !s.enough(f) {
			short = append(short, f.text().String())
		}
	}
	span := time.Duration(s.covered()) * time.Microsecond
	if span < 10*time.Microsecond {
		return fmt.Sprintf("the span is %s: it says nothing about any period", span)
	}
	without := ""
	if s.gap() != nil {
		without = " without the longest gap"
	}
	text := fmt.Sprintf("the span is %s%s, too short for limits for more than about %s",
		about(span), without, about(span/10))
	if len(short) > 0 {
		text += " (here " + strings.Join(short, ", ") + ")"
	}
	return text
}

// about rounds d to two units at most, such as 2h or 11m59s.
func about(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		d = d.Round(time.Hour)
		return strings.ReplaceAll(fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour), "d0h", "d")
	}
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		if d >= 60*unit {
			d = d.Round(unit)
			break
		}
	}
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}
