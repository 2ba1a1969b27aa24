package simulation

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"text/template"
	"time"
)

//go:embed regions.md.tmpl
var regionsText string

// regionsPage is docs/regions.md. Its tables are those of a run.
var regionsPage = template.Must(template.New("regions").Parse(regionsText))

// writeRegions writes the page about a run of each design.
func writeRegions(w io.Writer, runs map[string]*regions) error {
	kinds := make([]string, len(demands))
	for i, d := range demands {
		kinds[i] = d.name
	}
	return regionsPage.Execute(w, map[string]any{"Kinds": kinds, "Runs": runs})
}

// Granted returns what keys of a kind were granted in a phase, of what one limiter would grant.
func (w *regions) Granted(kind, phase int) string {
	a := w.kinds[kind].phases[phase]
	return fmt.Sprintf("%.0f%%", percent(a.granted, a.could))
}

// Full returns how near the grants came to the bound, at most, in any interval.
func (w *regions) Full() string {
	full := 0.0
	for _, k := range w.keys {
		full = max(full, k.bound.fill())
	}
	return fmt.Sprintf("%.0f%%", full)
}

// Near returns how many requests outside the home were decided without another region.
func (w *regions) Near(kind int) string {
	k := w.kinds[kind]
	return fmt.Sprintf("%.0f%%", percent(k.near, int64(len(k.waits))))
}

// Wait returns what requests outside the home waited for a decision: the median, and 99 of 100.
func (w *regions) Wait(kind int) string {
	waits := slices.Sorted(slices.Values(w.kinds[kind].waits))
	at := func(part int) int64 { return waits[len(waits)*part/100].Milliseconds() }
	return fmt.Sprintf("%d, %d ms", at(50), at(99))
}

// Healed returns how long after the partition a decision was still made without the home.
func (w *regions) Healed() string {
	return fmt.Sprintf("%.1f s", time.Duration(w.healed.Load()).Seconds())
}
