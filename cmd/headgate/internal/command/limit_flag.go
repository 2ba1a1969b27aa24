package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate"
)

// LimitsFlag adds --limit to cmd, which may be repeated.
func LimitsFlag(cmd *cobra.Command, texts *[]string, help string) {
	cmd.Flags().StringArrayVarP(texts, "limit", "l", nil, help)
}

// ParseLimits reads the values of --limit, at least one.
func ParseLimits(cmd *cobra.Command, texts []string) ([]headgate.Limit, error) {
	if len(texts) == 0 {
		return nil, Usagef(cmd, "no limit given; add one such as --limit 60/m")
	}
	limits := make([]headgate.Limit, 0, len(texts))
	for _, text := range texts {
		if name, _, _ := strings.Cut(text, "="); name == "imit" { // -limit is read as -l imit
			return nil, Usagef(cmd, `a flag has two dashes; did you mean "--limit"?`)
		}
		l, err := headgate.ParseLimit(text)
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	return limits, nil
}
