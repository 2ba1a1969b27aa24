package main

import (
	"slices"
	"strings"
	"testing"
)

// Every budget of Redis is about a workload and a number of callers that are run.
func TestBudgetsAreMeasured(t *testing.T) {
	p := fullPlan(1)
	ws := p.redisWorkloads()
	for _, b := range budgets {
		if b.Store != redisStore {
			continue
		}
		named := slices.ContainsFunc(ws, func(w *Workload) bool { return strings.HasPrefix(w.Name, b.Workload) })
		if !named || !slices.Contains(p.levels, b.Callers) {
			t.Errorf("%s: no cell of %q by %d callers", b.What, b.Workload, b.Callers)
		}
	}
}

func TestBudgetVerdicts(t *testing.T) {
	tests := []struct {
		ours float64
		want string
	}{
		{450, "measured 4.50 (4.50-4.50)  met"},
		{350, "measured 3.50 (3.50-3.50)  met"},
		{280, "measured 2.80 (2.80-2.80)  NOT met, by 20%"},
		{0, `not measured: "headgate" did not run beside the baseline`},
	}
	for _, tt := range tests {
		var r Results
		cell := Cell{redisStore, "10k uniform keys", 64, redisRateName}
		r.Add(cell, Sample{Rate: 100, RedisCPU: 10})
		cell.Contender = headgateName
		if tt.ours > 0 {
			r.Add(cell, Sample{Rate: tt.ours, RedisCPU: 1})
		}
		var text strings.Builder
		writeBudgets(&text, &r)
		line, _, _ := strings.Cut(text.String(), "\n")
		if !strings.HasPrefix(line, "budget redis, 64 callers ") || !strings.HasSuffix(line, tt.want) {
			t.Errorf("%q, want it to end with %q", line, tt.want)
		}
	}
	ceiling := Budget{Bound: 0.25}
	if got, want := ceiling.verdict(Spread{0.3, 0.2, 0.4, true}), "measured 0.30 (0.20-0.40)  NOT met, by 20%"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
