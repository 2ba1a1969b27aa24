package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// header names the columns of a table.
var header = []string{
	"store", "workload", "callers", "contender", "result", "ratio", "min-max",
	"allocs", "2/1 cores", "p50 us", "p99 us", "ratio", "min-max", "p99.9 us", "max us", "late", "not taken",
	"redis us", "ratio", "client us", "ratio",
}

// writeTables prints the rows as Markdown tables, one for each store, padded to be read
// as they are.
func writeTables(w io.Writer, rows []Row) error {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r Row) bool { return r.Store != rows[0].Store })
		if n < 0 {
			n = len(rows)
		}
		if err := writeTable(w, rows[:n]); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// writeTable prints one table, of the columns that say something in it.
func writeTable(w io.Writer, rows []Row) error {
	lines := [][]string{header}
	for _, r := range rows {
		lines = append(lines, r.columns())
	}
	widths := make([]int, len(header)) // 0 for a column without anything below its header
	for _, l := range lines[1:] {
		for i, cell := range l {
			if cell != "" {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell), utf8.RuneCountInString(header[i]))
			}
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
		if n > 0 && !leftAligned(i) {
			out[i] = out[i][:n-1] + ":"
		}
	}
	return out
}

func leftAligned(column int) bool { return column < 4 && column != 2 }

// pad writes one line with every cell as wide as its column, and without the columns
// that have no width.
func pad(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		if widths[i] == 0 {
			continue
		}
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
	part := func(m Metric) string { return text(r.Detail[m].times(100), "%.1f%%") }
	ratio := func(m Metric) string { return text(r.Ratios[m], "%.2fx") }
	return []string{
		r.Store, r.Workload, callers, r.Contender,
		result(r.Metric, r.Result.Median), text(r.Ratio, "%.2fx"), extremes(r.Ratio),
		detail(Allocs, "%.1f"), detail(Scaling, "%.2fx"),
		detail(P50, "%.0f"), detail(P99, "%.0f"), ratio(P99), extremes(r.Ratios[P99]),
		detail(P999, "%.0f"), detail(Longest, "%.0f"), part(Late), part(NotTaken),
		detail(RedisCPU, "%.1f"), ratio(RedisCPU), detail(OwnCPU, "%.1f"), ratio(OwnCPU),
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
