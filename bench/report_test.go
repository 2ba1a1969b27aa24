package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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
	for _, part := range parts {
		if err := part.measure(p, t.Context(), io.Discard, &out); err != nil {
			t.Fatalf("%s: %v", part.store, err)
		}
	}
	var text bytes.Buffer
	if err := report(&text, &out, p); err != nil {
		t.Fatal(err)
	}
	tables := strings.SplitN(text.String(), "\n\n", len(parts)+1)
	fields := [][]Entry{memoryField(), httpField(), gateField(), redisLoopField(), pacedField(), batchingField()}
	for i, part := range parts {
		isTable(t, tables[i])
		for _, e := range fields[i] {
			if !strings.Contains(tables[i], "\n| "+part.store) || !strings.Contains(tables[i], "| "+e.Name+" ") {
				t.Errorf("%s: no row of %s", part.store, e.Name)
			}
		}
	}
	for _, row := range out.Rows() {
		if asksRedis[row.Store] && row.Metric == Rate && !(row.Detail[OwnCPU].Median > 0) {
			t.Errorf("%v: no client CPU", row.Cell)
		}
	}
	if _, err := json.Marshal(out.Rows()); err != nil {
		t.Error(err)
	}
}

// isTable fails the test unless all lines of text have as many bars, and as long cells.
func isTable(t *testing.T, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.Count(line, "|") != strings.Count(lines[0], "|") || utf8.RuneCountInString(line) != utf8.RuneCountInString(lines[0]) {
			t.Errorf("line %d is unlike the first:\n%s\n%s", i+1, lines[0], line)
		}
	}
}

// A table has the columns that say something in it.
func TestTablesLeaveEmptyColumnsOut(t *testing.T) {
	var r Results
	r.Add(Cell{"memory", "w", 1, xTimeRateName}, Sample{Nanos: 5})
	r.Add(Cell{"paced", "w", 0, redisRateName}, Sample{Rate: 5000, P99: 100, NotTaken: 0.125})
	r.Add(Cell{"paced", "w", 0, headgateName}, Sample{Rate: 5000, P99: 50, NotTaken: 0})
	var text strings.Builder
	if err := writeTables(&text, r.Rows()); err != nil {
		t.Fatal(err)
	}
	want := `| store  | workload | callers | contender   | result | ratio |
| ------ | -------- | ------: | ----------- | -----: | ----: |
| memory | w        |       1 | x/time/rate | 5.0 ns | 1.00x |

| store | workload | contender           | result | ratio | p99 us | ratio | not taken |
| ----- | -------- | ------------------- | -----: | ----: | -----: | ----: | --------: |
| paced | w        | go-redis/redis_rate | 5.0k/s | 1.00x |    100 | 1.00x |     12.5% |
| paced | w        | headgate            | 5.0k/s | 1.00x |     50 | 0.50x |      0.0% |

`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-only", "disk"}, {"-rounds", "0"}, {"-fast"}, {"quick"},
		{"-contenders", "nobody else"}, {"-contenders", "headgate,"}, {"-callers", "0"}, {"-callers", "many"},
		{"-quick", "-only", "paced", "-workloads", "none"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
