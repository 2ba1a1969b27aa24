package simulation

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The plans of docs/regions.md, and for every change.
var (
	quarterHour = regionPlan{
		seed: 1, length: 15 * time.Minute, cutAt: 5 * time.Minute, cutFor: 5 * time.Minute,
		stay: 2 * time.Minute,
	}
	briefRegions = regionPlan{
		seed: 1, length: 105 * time.Second, cutAt: 40 * time.Second, cutFor: 40 * time.Second,
		stay: 20 * time.Second,
	}
)

func TestSimulationOfRegions(t *testing.T) {
	p := briefRegions
	if *docs != "" {
		p = quarterHour
	}
	runs := map[string]*regions{}
	for name, d := range map[string]design{
		"alone": alone, "closed": closed, "local": local, "parts": parts, "whole": whole,
	} {
		runs[name] = simulateRegions(t, p, d)
		runs[name].holds(t)
	}
	var text bytes.Buffer
	if err := writeRegions(&text, runs); err != nil {
		t.Fatal(err)
	}
	if *docs != "" {
		write(t, "regions.md", text.Bytes())
	}
	isPage(t, "regions.md", text.String())
}

func simulateRegions(t *testing.T, p regionPlan, d design) (w *regions) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if w, err = newRegions(p, d); err != nil {
			t.Fatal(err)
		}
		w.run(t.Context())
	})
	return w
}

// holds checks what must be true of every run.
func (w *regions) holds(t *testing.T) {
	t.Helper()
	exceeded := false
	for _, k := range w.keys {
		if k.bound.over > 0 {
			t.Errorf("%s: %s: %d tokens over %s", w.name, k.key, k.bound.over, k.bound.limit)
		}
		exceeded = exceeded || k.over > 0
	}
	if more := w.bound > limitCount; exceeded != more {
		t.Errorf("%s: granted more than the limit: %t; want %t", w.name, exceeded, more)
	}
	for _, k := range w.kinds {
		w.holdsKind(t, k)
	}
	if w.home == (w.crossed.Load() == 0) {
		t.Errorf("%s: %d calls between regions", w.name, w.crossed.Load())
	}
	if most := 2*storeTimeout + time.Second/2; w.mode != 0 && time.Duration(w.healed.Load()) > most {
		t.Errorf("%s: a process was without its store %s after the partition", w.name, w.Healed())
	}
}

// holdsKind checks what must be true of keys of a kind.
func (w *regions) holdsKind(t *testing.T, k *kind) {
	t.Helper()
	before, cut := k.phases[0], k.phases[1]
	if w.home && before.granted < before.could*9/10 {
		t.Errorf("%s: %s: %d granted, %d by one limiter", w.name, k.name, before.granted, before.could)
	}
	// A few requests are not answered because the partition begins.
	if before.undecided > 1+before.asked/100 {
		t.Errorf("%s: %s: %d of %d undecided", w.name, k.name, before.undecided, before.asked)
	}
	if without := w.home && w.mode != local.mode; without != (cut.undecided > 0) {
		t.Errorf("%s: %s: %d undecided in the partition", w.name, k.name, cut.undecided)
	}
	if k.name == demands[1].name && w.mode != 0 && k.near < int64(len(k.waits))*8/10 {
		t.Errorf("%s: %s: %d of %d decided in the process", w.name, k.name, k.near, len(k.waits))
	}
}

var (
	figures = regexp.MustCompile(`[0-9][0-9,.]*`)
	spaces  = regexp.MustCompile(`\s+`)
)

// isPage fails the test if a page of docs is not text, whatever its figures.
func isPage(t *testing.T, name, text string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(s string) string {
		return strings.TrimSpace(spaces.ReplaceAllString(figures.ReplaceAllString(s, "#"), " "))
	}
	if got, want := plain(string(page)), plain(text); got != want {
		t.Errorf("docs/%s is not that of its template: run make simulate\n%s\nwant\n%s", name, got, want)
	}
}
