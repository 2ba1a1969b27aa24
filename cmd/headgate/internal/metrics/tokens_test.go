package metrics

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

func TestTokens(t *testing.T) {
	m := New("", nil)
	model := rules.Rule{Name: "model", Cost: rules.Cost{Tokens: &rules.TokenCost{Estimate: 1}}}
	plain := rules.Rule{Name: "plain"}
	m.Use([]rules.Rule{model, plain})
	m.Settled(rules.Settlement{Rule: &model, Estimated: 2000, Used: 300, Known: true})
	m.Settled(rules.Settlement{Rule: &model, Estimated: 1000, Used: 1000})
	m.Settled(rules.Settlement{Rule: &plain, Estimated: 1, Used: 1})
	m.Settled(rules.Settlement{Rule: &rules.Rule{Name: "gone"}, Estimated: 1, Used: 1})
	fixed := rules.Rule{Name: "fixed", Cost: rules.Cost{Fixed: 5}}
	m.Use([]rules.Rule{model, plain, fixed})
	m.Decided(rules.Event{Rule: &fixed, Cost: 5, Outcome: rules.Allowed})
	m.Decided(rules.Event{Rule: &fixed, Cost: 5, Outcome: rules.Denied})
	m.Decided(rules.Event{Rule: &model, Cost: 9, Outcome: rules.Allowed}) // which is settled later
	m.Rules(func(rule string, c Counts) {
		if want := map[string]uint64{"model": 1300, "fixed": 5}[rule]; c.Tokens != want {
			t.Errorf("%s: %d tokens, want %d", rule, c.Tokens, want)
		}
	})
	page := scrape(t, m)
	wants(t, page,
		`headgate_rule_tokens_estimated_total{rule="model"} 3000`,
		`headgate_rule_tokens_used_total{rule="model"} 1300`,
		`headgate_rule_tokens_unknown_total{rule="model"} 1`)
	if strings.Contains(page, `tokens_used_total{rule="plain"}`) || strings.Contains(page, `"gone"`) {
		t.Error(page)
	}
	model.Cost = rules.Cost{}
	m.Use([]rules.Rule{model})
	if page := scrape(t, m); strings.Contains(page, "headgate_rule_tokens_used_total{") {
		t.Error(page)
	}
}
