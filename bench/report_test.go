package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		in   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, true}},
		{[]float64{9, 1, 5}, Spread{5, 1, 9, true}},
		{[]float64{9, 1, 5, 6}, Spread{5.5, 1, 9, true}},
	}
	for _, tt := range tests {
		if got := spreadOf(tt.in); got != tt.want {
			t.Errorf("spreadOf(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}

// A round in which the machine was slow counts like any other: the ratio is
// taken within it.
func TestRatioIsTakenRoundByRound(t *testing.T) {
	var r Results
	ours, base := Cell{Contender: "ours"}, Cell{Contender: "base"}
	for _, load := range []float64{1, 10, 3} {
		r.Add(ours, Sample{Nanos: 50 * load})
		r.Add(base, Sample{Nanos: 100 * load})
	}
	if got, want := r.Ratio(ours, base, Nanos), (Spread{0.5, 0.5, 0.5, true}); got != want {
		t.Errorf("ratio is %v, want %v", got, want)
	}
	if r.Ratio(ours, Cell{Contender: "absent"}, Nanos).OK {
		t.Error("a ratio to nobody")
	}
}

func TestLatenciesKeepTheLast(t *testing.T) {
	ls := newLatencies(2, 8)
	for i := range 10 {
		ls[0].add(time.Duration(i) * time.Microsecond) // keeps 6 to 9
	}
	ls[1].add(100 * time.Microsecond)
	if got := quantiles(ls, 0, 0.5, 0.99); got[0] != 6 || got[1] != 8 || got[2] != 100 {
		t.Errorf("quantiles are %v, want 6, 8 and 100", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{7: "7", 1500: "1500", 10_000: "10k", 1_000_000: "1M", 1_500_000: "1500k"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

// The whole program on a small plan: everything runs, verifies, and is printed.
func TestSmallPlan(t *testing.T) {
	var out Results
	p := smallPlan()
	if err := p.memory(t.Context(), io.Discard, &out); err != nil {
		t.Fatal(err)
	}
	if err := p.http(t.Context(), io.Discard, &out); err != nil {
		t.Fatal(err)
	}
	if err := p.gate(t.Context(), io.Discard, &out); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report(&text, &out, p); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	for i, line := range lines[:len(out.Rows())+2] {
		if got, want := strings.Count(line, "|"), len(header)+1; got != want {
			t.Errorf("line %d has %d bars, want %d:\n%s", i+1, got, want, line)
		}
	}
	for _, e := range slices.Concat(memoryField(), httpField(), gateField(), redisField()) {
		if !strings.Contains(text.String(), "| "+e.Name+" ") {
			t.Errorf("no row of %s", e.Name)
		}
	}
	if _, err := json.Marshal(out.Rows()); err != nil {
		t.Error(err)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-only", "disk"}, {"-rounds", "0"}, {"-fast"}, {"quick"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
