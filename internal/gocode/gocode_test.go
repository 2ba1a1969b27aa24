package gocode

import (
	"testing"
	"time"
)

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
