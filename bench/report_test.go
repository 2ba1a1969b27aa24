package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// Every budget is about something that a full run measures.
func TestBudgetsAreMeasured(t *testing.T) {
	o := options{rounds: 1}
	measured := o.plan().cells()
	for _, b := range budgets {
		than := b.Of
		if b.Than != "" && b.Than != everyPeer {
			than.Contender = b.Than
		}
		if !slices.Contains(measured, b.Of) || !slices.Contains(measured, than) {
			t.Errorf("%s: not measured", b.What)
		}
	}
}

func TestBudgetRows(t *testing.T) {
	var r Results
	cell := Cell{redisPart, "w", 64, headgateName}
	for _, s := range []struct {
		name    string
		samples [3]float64
	}{
		{headgateName, [3]float64{300, 200, 100}},
		{fixedWindowName, [3]float64{900, 900, 900}}, // Headgate's own: no peer
		{"slow", [3]float64{100, 100, 100}},
		{"fast", [3]float64{200, 100, 200}},
	} {
		for _, v := range s.samples {
			c := cell
			c.Contender = s.name
			r.Add(c, Sample{Rate: v})
		}
	}
	for _, tt := range []struct {
		b    Budget
		want string
	}{
		{Budget{Than: "slow", AtLeast: true, Bound: 2}, "| at least 2 | 2.00 (1.00-3.00) | met |"},
		{Budget{Than: "slow", Bound: 1.25}, "| at most 1.25 | 2.00 (1.00-3.00) | **missed** |"},
		{
			Budget{Than: everyPeer, AtLeast: true, Bound: 2},
			"| at least 2 | 1.50 (0.50-2.00), fast | **missed** |",
		},
		{
			Budget{Than: "fast", Minus: true, Bound: 200.001},
			"| at most 200 | 100.00 (-100.00-100.00) | met |",
		},
		{Budget{AtLeast: true, Bound: 4e6}, "| at least 4M | 200.00 (100.00-300.00) | **missed** |"},
	} {
		tt.b.What, tt.b.Of, tt.b.Metric = "what", cell, Rate
		if got, want := tt.b.row(&r), "| what "+tt.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A strict run fails if a budget is missed, and if one is not measured.
func TestStrictRunFails(t *testing.T) {
	args := []string{"-strict", "-only", "memory", "-contenders", "none", "-rounds", "1"}
	err := run(t.Context(), args, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not measured") {
		t.Errorf("error is %v", err)
	}
}

func TestTableLeavesEmptyColumnsOut(t *testing.T) {
	var r Results
	for _, v := range []float64{100, 50, 200} {
		r.Add(Cell{"p", "w", 0, "base"}, Sample{Rate: 1000 * v, P99: 10})
		r.Add(Cell{"p", "w", 0, "x"}, Sample{Rate: 500 * v, P99: v})
	}
	var text strings.Builder
	writeTable(&text, &r, part{name: "p", title: "Title", about: "About.", bases: []string{"base"}})
	want := `
## Title

About. Ratios are to base.

| workload | contender | k/s | k/s ratio | p99 us | p99 us ratio |
| --- | --- | --- | --- | --- | --- |
| w | base | 100.0 |  | 10 |  |
| w | x | 50.0 | 0.50 (0.50-0.50) | 100 | 10.00 (5.00-20.00) |
`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-only", "disk"}, {"-rounds", "0"}, {"-fast"}, {"quick"}, {"-callers", "0"},
		{"-callers", "many"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
