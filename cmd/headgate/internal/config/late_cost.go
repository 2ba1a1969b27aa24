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
		field{"tokens", func(n *yaml.Node, path string) { c.Tokens = r.tokenCost(n, path) }},
		field{"response", func(n *yaml.Node, path string) {
			c.ResponseHeader = parsed(r, n, path, rules.ParseFieldName)
		}},
		field{"estimate", func(n *yaml.Node, path string) {
			c.Estimate, _ = r.whole(n, path, 1, usage.MaxCount)
		}},
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
	number := func(name string, to *int64, least, most int64) field {
		return field{name, func(n *yaml.Node, path string) {
			*to, _ = r.whole(n, path, least, most)
		}}
	}
	r.mapping(n, path,
		number("estimate", &t.Estimate, 1, usage.MaxCount),
		number("input", &t.Input, 0, usage.MaxWeight),
		number("output", &t.Output, 0, usage.MaxWeight),
		number("cached", &t.Cached, 0, usage.MaxWeight),
		field{"bound", func(n *yaml.Node, path string) { t.Bound, _ = r.text(n, path) }},
		field{"unknown", func(n *yaml.Node, path string) {
			t.RefundUnknown = parsed(r, n, path, rules.ParseUnknown)
		}},
		field{"include_usage", func(n *yaml.Node, path string) {
			t.IncludeUsage, _ = r.boolean(n, path)
		}},
	)
	r.require(n, path, "estimate",
		"what is reserved for an answer without max_tokens, such as 2000")
	return &t
}
