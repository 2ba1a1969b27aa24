package gocode

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestCalendar(t *testing.T) {
	for l, want := range map[headgate.Limit]string{
		headgate.Daily(5): "headgate.Daily(5)",
		headgate.Weekly(5).In("Asia/Tokyo").Named("w"):                     `headgate.Weekly(5).In("Asia/Tokyo")`,
		headgate.Monthly(5).In("Europe/Zurich").Anchored(17):               `headgate.Monthly(5).In("Europe/Zurich").Anchored(17)`,
		headgate.Yearly(5).AnchoredOn(time.April, 6).In("America/Toronto"): `headgate.Yearly(5).In("America/Toronto").AnchoredOn(time.April, 6)`,
	} {
		if got := Limit(l); got != want {
			t.Errorf("%s is %s, want %s", l, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "time.Second", 90 * time.Minute: "90*time.Minute", 24 * time.Hour: "24*time.Hour",
		1500 * time.Millisecond: "1500*time.Millisecond", time.Microsecond: "1*time.Microsecond",
	} {
		if got := duration(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}
