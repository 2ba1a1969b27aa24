package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

// limitsFlag gives cmd its --limit, which may be repeated.
func limitsFlag(cmd *cobra.Command, texts *[]string, help string) {
	cmd.Flags().StringArrayVarP(texts, "limit", "l", nil, help)
}

// parseLimits reads what was given as --limit, at least one.
func parseLimits(cmd *cobra.Command, texts []string) ([]headgate.Limit, error) {
	if len(texts) == 0 {
		return nil, usagef(cmd, "no limit given; add one such as --limit 60/m")
	}
	limits := make([]headgate.Limit, 0, len(texts))
	for _, text := range texts {
		l, err := headgate.ParseLimit(text)
		if e, ok := errors.AsType[*headgate.InvalidError](err); ok && strings.HasSuffix(e.Field, ": limit") {
			e.Field, e.Value = "limit", strconv.Quote(text) // it is all of it that is wrong: told once
		}
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// eachOnce finds fault with limits of which a store would not tell two apart.
func eachOnce(cmd *cobra.Command, limits []headgate.Limit) error {
	seen := map[string]headgate.Limit{}
	for _, l := range limits {
		other, again := seen[l.ID()]
		switch {
		case again && other == l:
			return usagef(cmd, "the limit %s is given twice; give it once", l)
		case again:
			return usagef(cmd, "the limits %s and %s have one name; give each its own", other, l)
		}
		seen[l.ID()] = l
	}
	return nil
}
