package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// target is what a request charges: a key of a rule, or of an inline limit.
type target struct {
	rule string
	text string // of an inline limit, if there is no rule
	key  string
	cost int64

	headroom int64 // tokens or permits that are left to others

	permit bool // a permit is asked for, not tokens

	terms rules.Terms
}

// fields are those that name a target.
func (t *target) fields() []jsonbody.Field {
	return []jsonbody.Field{
		jsonbody.Text("rule", &t.rule, maxRule),
		jsonbody.Text("limit", &t.text, maxRule),
		jsonbody.Text("key", &t.key, MaxKey),
	}
}

const maxRule = 200

// unset is the cost of a target that is charged what its rule says.
const unset = -1

// costField reads the cost of t. Unless given, it is [rules.Terms.DefaultCost], or 1.
func (t *target) costField() jsonbody.Field {
	t.cost = unset
	return jsonbody.Number("cost", &t.cost, 1)
}

// headroomField reads the headroom of t.
func (t *target) headroomField() jsonbody.Field {
	return jsonbody.Number("headroom", &t.headroom, 0)
}

// resolve finds what applies to t, and checks that it has a key and the kind of rule that the
// request needs. where is put before the names of fields in errors.
func (h *Handler) resolve(t *target, where string) error {
	if err := h.find(t, where); err != nil {
		return err
	}
	switch {
	case t.key == "" && t.needsKey():
		return problem.BadField(where+"key", "missing", "a key such as ip:192.0.2.1")
	case t.permit && t.terms.Permits == 0:
		return problem.BadField(where+"rule", jsonbody.Quote(t.rule)+", which has no permits",
			"a rule with permits")
	case !t.permit && len(t.terms.Limits) == 0:
		return problem.BadField(where+"rule",
			jsonbody.Quote(t.rule)+", which has permits and no limits",
			"a rule with limits, or /v1/acquire")
	}
	return nil
}

// needsKey reports whether only a key tells the callers of t apart. A rule without key limits all
// requests together.
func (t *target) needsKey() bool { return t.rule == "" || len(t.terms.Rule.Key) > 0 }

// find finds what applies to t.
func (h *Handler) find(t *target, where string) error {
	switch {
	case t.rule == "" && t.text == "":
		return problem.BadField(where+"rule", "missing", "the name of a rule in the file")
	case t.rule != "" && t.text != "":
		return problem.BadField(where+"limit", jsonbody.Quote(t.text)+" with a rule",
			"one of rule and limit")
	case t.text != "":
		return h.inline(t, where)
	}
	terms, err := h.options.Rules.Terms(t.rule, t.key)
	if err != nil {
		p := *toProblem(err)
		p.Field, p.Detail = where+p.Field, where+p.Detail
		return &p
	}
	if t.key == "" && len(terms.Rule.Key) == 0 { // as gateways and the proxy count it
		t.key = rules.KeyOfAll
		if terms, err = h.options.Rules.Terms(t.rule, t.key); err != nil {
			return err
		}
	}
	t.terms = terms
	if t.cost == unset {
		t.cost = terms.DefaultCost(t.headroom)
	}
	return nil
}

func (h *Handler) inline(t *target, where string) error {
	if !h.settings.Load().inlineLimits {
		return &problem.Problem{Status: http.StatusForbidden, Field: where + "limit",
			Detail: where + "limit is not allowed; " +
				"want a rule, or api.allow_inline_limits: true in the file"}
	}
	if strings.Contains(t.text, "=") {
		return problem.BadField(where+"limit", jsonbody.Quote(t.text),
			"a limit without a name; a rule has a name")
	}
	l, err := headgate.ParseLimit(t.text)
	if err != nil {
		p := *toProblem(err)
		p.Field, p.Detail = where+"limit", where+p.Detail
		return &p
	}
	t.terms = rules.Terms{Limits: []headgate.Limit{l}}
	if t.cost == unset {
		t.cost = 1
	}
	return nil
}

// enforced reports whether t can deny.
func (t *target) enforced() bool { return t.terms.Mode == rules.Enforce }

// limits returns the limits of t; none if the rule is off.
func (t *target) limits() []headgate.Limit {
	if t.terms.Mode == rules.Off {
		return nil
	}
	return t.terms.Limits
}

// hasWindow reports whether a limit of t is no bucket.
func (t *target) hasWindow() bool {
	return slices.ContainsFunc(t.limits(), func(l headgate.Limit) bool { return l.Refill() == 0 })
}

// banned reports whether a ban denies t. It denies no refund.
func (t *target) banned() bool {
	return t.terms.Banned && t.terms.Mode != rules.Off && t.cost >= 0
}

// banEnds returns the time until the ban of t ends.
func (t *target) banEnds() time.Duration {
	if t.terms.Until.IsZero() {
		return headgate.Never
	}
	return max(time.Until(t.terms.Until), time.Microsecond)
}
