package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/usage"
)

// lateCost reads a cost that is known only from the response. Its forms are
// {tokens: {estimate: 2000, output: 4}} and {response: NAME, estimate: 500}.
func (r *reader) lateCost(n *yaml.Node, path string) (c rules.Cost) {
	r.mapping(n, path,
		into("tokens", &c.Tokens, r.tokenCost),
		into("response", &c.ResponseHeader, parsed(r, rules.ParseFieldName)),
		into("estimate", &c.Estimate, wholeNumber[int64](r, 1, usage.MaxCount)),
	)
	switch tokens, response := has(n, "tokens"), has(n, "response"); {
	case tokens && response:
		r.faultf(n, path, "has tokens and response; want one of them")
	case !tokens && !response:
		r.faultf(n, path, "has neither tokens nor response; want one of them")
	case tokens && has(n, "estimate"):
		r.faultf(n, path, "has tokens and estimate; want the estimate in tokens")
	}
	return c
}

func (r *reader) tokenCost(n *yaml.Node, path string) *rules.TokenCost {
	t := rules.DefaultWeights
	weight := wholeNumber[int64](r, 0, usage.MaxWeight)
	r.mapping(n, path,
		into("estimate", &t.Estimate, wholeNumber[int64](r, 1, usage.MaxCount)),
		into("input", &t.Input, weight),
		into("output", &t.Output, weight),
		into("cached", &t.Cached, weight),
		into("bound", &t.Bound, r.text),
		into("unknown", &t.RefundUnknown, parsed(r, rules.ParseUnknown)),
		into("include_usage", &t.IncludeUsage, r.boolean),
	)
	r.require(n, path, "estimate",
		"what is reserved for an answer without max_tokens, such as 2000")
	return &t
}
