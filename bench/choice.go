package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A choice is words of which one must occur in a name; without words it is everything.
type choice []string

// has reports whether name is chosen.
func (c choice) has(name string) bool {
	return len(c) == 0 || slices.ContainsFunc(c, func(word string) bool { return strings.Contains(name, word) })
}

// Set implements [flag.Value], with words between commas.
func (c *choice) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			return fmt.Errorf("an empty word; want parts of names between commas")
		}
		*c = append(*c, word)
	}
	return nil
}

// String implements [flag.Value].
func (c *choice) String() string { return strings.Join(*c, ",") }

// entries are those chosen of the field of a store, and the contenders that ratios are
// taken against there.
func (c choice) entries(store string, field []Entry) []Entry {
	return slices.DeleteFunc(field, func(e Entry) bool {
		return !c.has(e.Name) && !slices.Contains(baselines[store], e.Name)
	})
}

// workloads are those chosen.
func (c choice) workloads(ws []*Workload) []*Workload {
	return slices.DeleteFunc(ws, func(w *Workload) bool { return !c.has(w.Name) })
}

// names checks that every word occurs in the name of a contender.
func (c choice) names(fields ...[]Entry) error {
	for _, word := range c {
		if !slices.ContainsFunc(slices.Concat(fields...), func(e Entry) bool { return strings.Contains(e.Name, word) }) {
			return fmt.Errorf("-contenders has %q; want a part of the name of a contender", word)
		}
	}
	return nil
}

// levels is a number of callers, or several between commas.
type levels []int

// Set implements [flag.Value].
func (l *levels) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("%q callers; want a number above 0", word)
		}
		*l = append(*l, n)
	}
	return nil
}

// String implements [flag.Value].
func (l *levels) String() string { return strings.Trim(fmt.Sprint([]int(*l)), "[]") }
