package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// column is one column of the tables. A table leaves out those that are empty.
type column struct {
	title string
	text  func(r *Results, c, base Cell) string
}

var columns = []column{
	{"workload", func(_ *Results, c, _ Cell) string { return c.Workload }},
	{"callers", func(_ *Results, c, _ Cell) string {
		if c.Callers == 0 {
			return ""
		}
		return fmt.Sprint(c.Callers)
	}},
	{"contender", func(_ *Results, c, _ Cell) string { return c.Contender }},
	number(Nanos, "%.1f", 1), ratio(Nanos),
	number(Rate, "%.1f", 1e3), ratio(Rate),
	number(P50, "%.0f", 1), ratio(P50), number(P99, "%.0f", 1), ratio(P99),
	number(ServerCPU, "%.1f", 1), ratio(ServerCPU),
	number(RedisCPU, "%.2f", 1), ratio(RedisCPU),
	number(ClientCPU, "%.1f", 1), ratio(ClientCPU),
	number(Script, "%.2f", 1), ratio(Script),
	number(Allocs, "%.1f", 1), number(Scaling, "%.2f", 1), number(Bytes, "%.1f", 1),
}

// number is a column of medians, in units of unit.
func number(m Metric, format string, unit float64) column {
	return column{string(m), func(r *Results, c, _ Cell) string {
		if s := r.Of(c, m); s.OK {
			return fmt.Sprintf(format, s.Median/unit)
		}
		return ""
	}}
}

// ratio is a column of ratios to the base, with their extremes.
func ratio(m Metric) column {
	return column{string(m) + " ratio", func(r *Results, c, base Cell) string {
		if s := r.Ratio(c, base, m); s.OK && c != base {
			return s.String()
		}
		return ""
	}}
}

// String is the median and the extremes.
func (s Spread) String() string {
	switch {
	case !s.OK:
		return ""
	case s.Median >= 1e5:
		return fmt.Sprintf("%.2fM (%.2fM-%.2fM)", s.Median/1e6, s.Min/1e6, s.Max/1e6)
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max)
}

// writeTable writes the table of a part, if anything was measured.
func writeTable(w io.Writer, r *Results, p part) {
	lines := [][]string{nil, nil}
	for _, col := range columns {
		lines[0], lines[1] = append(lines[0], col.title), append(lines[1], "---")
	}
	for _, c := range r.cells {
		if c.Part != p.name {
			continue
		}
		base, row := r.base(c, p.bases), []string(nil)
		for _, col := range columns {
			row = append(row, col.text(r, c, base))
		}
		lines = append(lines, row)
	}
	if len(lines) == 2 {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n%s", p.title, p.about)
	if p.bases != nil {
		fmt.Fprintf(w, " Ratios are to %s.", strings.Join(p.bases, " or "))
	}
	fmt.Fprint(w, "\n\n")
	for _, line := range lines {
		for i, cell := range line {
			if slices.ContainsFunc(lines[2:], func(l []string) bool { return l[i] != "" }) {
				fmt.Fprintf(w, "| %s ", cell)
			}
		}
		fmt.Fprintln(w, "|")
	}
}

// base is the first of bases that was measured in the group of c.
func (r *Results) base(c Cell, bases []string) Cell {
	for _, name := range bases {
		if c.Contender = name; r.samples[c] != nil {
			return c
		}
	}
	return c
}
