package algorithm

import "testing"

// A zone is loaded once: the calendar of terms that were checked cannot lack it.
func TestAZoneIsLoadedOnce(t *testing.T) {
	load := func() {
		if zone, err := loadZone("Europe/Zurich"); err != nil || zone.String() != "Europe/Zurich" {
			t.Fatal(zone, err)
		}
	}
	if n := testing.AllocsPerRun(5, load); n > 0 {
		t.Errorf("loading it again makes %g allocations", n)
	}
	if _, err := loadZone("No/Where"); err == nil {
		t.Error("an unknown zone is no error")
	}
}
