package rules

import (
	"context"
	"fmt"
	"net/http"

	"github.com/headgate/headgate/internal/usage"
	"golang.org/x/net/http/httpguts"
)

// TokenCost is a weighted sum of the tokens that a model has used. A part of it is taken before the
// request, and corrected after the response.
type TokenCost = usage.Cost

// DefaultWeights are the weights of a [TokenCost] that has none of its own.
var DefaultWeights = TokenCost{Input: 1, Output: 1}

// Settlement is what a request cost whose cost is in the response.
type Settlement struct {
	Rule      *Rule
	Estimated int64 // charged before the request
	Used      int64 // charged in all
	Known     bool  // by the response
}

// IsLate reports whether the response has the cost.
func (c Cost) IsLate() bool { return c.ResponseHeader != "" || c.Tokens != nil }

// HasTokens reports whether a request can cost another number of tokens than 1.
func (c Cost) HasTokens() bool { return c.IsLate() || c.RequestHeader != "" || c.Fixed > 1 }

// Known returns the cost of a request without its fields and its body.
func (c Cost) Known() int64 {
	if c.Tokens != nil {
		return c.Tokens.Estimate
	}
	return max(c.Fixed, c.Estimate, 1)
}

// fitting lowers an estimate to what the limits of a can hold beside the headroom, so that a small
// limit is not closed to all.
func (a *ask) fitting(estimate int64) int64 {
	for _, l := range a.limits {
		estimate = min(estimate, l.Capacity()-partOf(a.percent, l.Capacity())-a.headroom)
	}
	return max(estimate, 1)
}

// charged returns a with the cost that was charged: none, if a fallback granted it unchecked.
func (a *ask) charged() ask {
	taken := *a
	if a.rule.Mode == Enforce && a.strictest().Unchecked() {
		taken.cost = 0
	}
	return taken
}

// ReadsUsage reports whether the body of the response has a cost. A may be nil.
func (a *Admission) ReadsUsage() bool {
	for i := 0; a != nil && i < len(a.late); i++ {
		if a.late[i].rule.Cost.Tokens != nil {
			return true
		}
	}
	return false
}

// SettleUsage charges what [Admission.Settle] did not, after the end of the response: what seen
// says, or what was taken before the request. A failure gives back an estimate.
func (a *Admission) SettleUsage(ctx context.Context, seen usage.Answer) {
	var changed []ask
	for _, c := range a.late {
		used, known := c.cost, false
		if c.rule.Cost.Tokens != nil {
			used, known = c.rule.Cost.Tokens.After(c.cost, seen)
		} else if c.rule.Cost.Estimate > 0 && seen.Failed {
			used = 0
		}
		if a.engine.settled(&c, used, known) {
			changed = append(changed, c)
		}
	}
	a.late = nil
	if len(changed) > 0 {
		a.engine.settle(ctx, changed)
	}
}

// settled makes the cost of c what is still to be charged, and reports whether there is any.
func (e *Engine) settled(c *ask, used int64, known bool) bool {
	if e.options.Settled != nil {
		e.options.Settled(Settlement{&c.rule.Rule, c.cost, used, known})
	}
	c.cost = used - c.cost
	return c.cost != 0
}

// ParseUnknown reads what becomes of the cost of a whole answer without usage: keep or refund.
func ParseUnknown(text string) (refund bool, err error) {
	if text != "keep" && text != "refund" {
		return false, fmt.Errorf("%q is neither keep nor refund; want one of them", text)
	}
	return text == "refund", nil
}

// ParseFieldName reads the name of a header field.
func ParseFieldName(text string) (string, error) {
	if !httpguts.ValidHeaderFieldName(text) {
		return "", fmt.Errorf("%q is not the name of a header field; want one such as "+
			"X-Tokens-Used", text)
	}
	return http.CanonicalHeaderKey(text), nil
}
