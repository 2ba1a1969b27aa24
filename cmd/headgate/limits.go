package main

import (
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
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	return limits, nil
}
