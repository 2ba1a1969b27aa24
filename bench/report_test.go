package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// A quick run measures every contender of every part but service, whose peer takes a minute to
// build: make bench-quick runs that as well.
func TestQuickRunMeasuresAll(t *testing.T) {
	var text bytes.Buffer
	args := []string{"-quick", "-callers", "4", "-only", "memory,http,redis,network,script,replay"}
	if err := run(t.Context(), args, &text, io.Discard); err != nil {
		t.Fatal(err)
	}
	tables := strings.Split(text.String(), "\n## ")[1:]
	fields := [][]Entry{
		memoryField(), httpField(), slices.Concat(redisField(), denyField(), leaseField()),
		networkField(), {{Name: headgateName}, {Name: prototypeName}}, {{Name: headgateName}},
	}
	if len(tables) != len(fields) {
		t.Fatalf("%d tables, want %d", len(tables), len(fields))
	}
	for i, field := range fields {
		for _, e := range field {
			if !strings.Contains(tables[i], "| "+e.Name+" |") {
				t.Errorf("no row of %s in\n%s", e.Name, tables[i])
			}
		}
	}
}

// Every budget is about something that a full run measures.
func TestBudgetsAreMeasured(t *testing.T) {
	o := options{rounds: 1}
	p := o.plan()
	measured := make(map[Cell]bool)
	add := func(part, workload string, callers []int, field []Entry) {
		for _, n := range callers {
			for _, e := range field {
				measured[Cell{part, workload, n, e.Name}] = true
			}
		}
	}
	for _, l := range p.redisLoads() {
		add(redisPart, l.Name, l.callers, l.field)
	}
	for _, l := range p.networkLoads() {
		add(networkPart, l.name, l.rates, l.field)
	}
	add(redisPart, usageName, []int{0}, redisField())
	add(memoryPart, hotKeyName, coreCounts, memoryField())
	add(memoryPart, count(p.memoryKeys)+" random keys", coreCounts, memoryField())
	add(httpPart, hotKeyName, coreCounts, httpField())
	add(httpPart, count(p.clients)+" random keys", coreCounts, httpField())
	add(scriptPart, scriptName, batchSizes, []Entry{{Name: headgateName}, {Name: prototypeName}})
	for _, l := range p.serviceLoads() {
		for _, e := range l.field {
			add(servicePart, l.Name, l.callers, []Entry{{Name: e.name}})
		}
	}
	for _, l := range p.consoleLoads() {
		for _, w := range watchedField() {
			add(servicePart, l.Name, l.callers, []Entry{{Name: w.name}})
		}
	}
	add(replayPart, count(p.replayLines)+" lines", []int{0}, []Entry{{Name: headgateName}})
	for _, b := range budgets {
		than := b.Of
		if b.Than != "" && b.Than != everyPeer {
			than.Contender = b.Than
		}
		if !measured[b.Of] || !measured[than] {
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
			Budget{Than: everyPeer, AtLeast: true, Bound: 2, Wish: true},
			"| wish: at least 2 | 1.50 (0.50-2.00), fast | not yet |",
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
