package main

import (
	"errors"
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

// parseChoice reads words between commas.
func parseChoice(text string) (choice, error) {
	words := strings.Split(text, ",")
	if slices.Contains(words, "") {
		return nil, errors.New("an empty word; want parts of names between commas")
	}
	return words, nil
}

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

// parseLevels reads numbers of callers between commas.
func parseLevels(text string) (ls []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q callers; want a number above 0", word)
		}
		ls = append(ls, n)
	}
	return ls, nil
}

// into is the value of a flag that parse reads.
func into[T any](value *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*value, err = parse(text)
		return err
	}
}
