package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// header names the columns of the table.
var header = []string{
	"store", "workload", "callers", "contender", "result", "ratio", "min-max",
	"allocs", "2/1 cores", "p50 us", "p99 us", "redis us", "ratio",
}

// writeTable prints the rows as one Markdown table, padded to be read as it is.
func writeTable(w io.Writer, rows []Row) error {
	lines := [][]string{header}
	for _, r := range rows {
		lines = append(lines, r.columns())
	}
	widths := make([]int, len(header))
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines = slices.Insert(lines, 1, rule(widths))
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, pad(l, widths)); err != nil {
			return err
		}
	}
	return nil
}

// rule is the line under the header; numbers stand to the right.
func rule(widths []int) []string {
	out := make([]string, len(widths))
	for i, n := range widths {
		out[i] = strings.Repeat("-", n)
		if !leftAligned(i) {
			out[i] = out[i][:n-1] + ":"
		}
	}
	return out
}

func leftAligned(column int) bool { return column < 4 && column != 2 }

// pad writes one line with every cell as wide as its column.
func pad(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if leftAligned(i) {
			c += fill
		} else {
			c = fill + c
		}
		b.WriteString("| " + c + " ")
	}
	return b.String() + "|"
}

// columns is the row as text.
func (r Row) columns() []string {
	callers := ""
	if r.Callers > 0 {
		callers = fmt.Sprint(r.Callers)
	}
	detail := func(m Metric, format string) string { return text(r.Detail[m], format) }
	return []string{
		r.Store, r.Workload, callers, r.Contender,
		result(r.Metric, r.Result.Median), text(r.Ratio, "%.2fx"), extremes(r.Ratio),
		detail(Allocs, "%.1f"), detail(Scaling, "%.2fx"),
		detail(P50, "%.0f"), detail(P99, "%.0f"), detail(RedisCPU, "%.1f"), text(r.CPURatio, "%.2fx"),
	}
}

// result writes the main number of a row with its unit.
func result(m Metric, v float64) string {
	switch m {
	case Nanos:
		return fmt.Sprintf("%.1f ns", v)
	case Rate:
		return fmt.Sprintf("%.1fk/s", v/1e3)
	case Most:
		return fmt.Sprintf("up to %.0f", v)
	case Part:
		return fmt.Sprintf("%.1f%% of it", 100*v)
	case GCCycle:
		return fmt.Sprintf("GC %.1f ms", v)
	case GCPause:
		return fmt.Sprintf("pause %.0f us", v)
	case ByUsage:
		return fmt.Sprintf("%.0f B by USAGE", v)
	default:
		return fmt.Sprintf("%.1f B/key", v)
	}
}

// text writes the median of s, or nothing where nothing was measured.
func text(s Spread, format string) string {
	if !s.OK {
		return ""
	}
	return fmt.Sprintf(format, s.Median)
}

// extremes writes the spread of a ratio, or nothing where it has none.
func extremes(s Spread) string {
	if !s.OK || s.Min == s.Max {
		return ""
	}
	return fmt.Sprintf("%.2f-%.2f", s.Min, s.Max)
}
