package httpapi

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// asked is what a request names: a key of a rule, or of an inline limit.
type asked struct {
	rules.Ask

	limit string   // inline, if there is no rule
	given []string // rule, limit or both
}

// fields are those that name a key.
func (a *asked) fields() []jsonbody.Field {
	return []jsonbody.Field{
		jsonbody.Given(jsonbody.Text("rule", &a.Rule, maxRule), &a.given),
		jsonbody.Given(jsonbody.Text("limit", &a.limit, maxRule), &a.given),
		jsonbody.Text("key", &a.Key, MaxKey),
	}
}

const maxRule = 200

// costField reads the cost of a, which is [rules.RuleCost] unless given.
func (a *asked) costField() jsonbody.Field {
	a.Cost = rules.RuleCost
	return jsonbody.Number("cost", &a.Cost, 1)
}

// headroomField reads the headroom of a.
func (a *asked) headroomField() jsonbody.Field {
	return jsonbody.Number("headroom", &a.Headroom, 0)
}

// read reads the body of r, which asks one thing.
func (h *Handler) read(
	w http.ResponseWriter, r *http.Request, a *asked, fields ...jsonbody.Field,
) error {
	if err := jsonbody.Read(w, r, MaxBody, fields...); err != nil {
		return err
	}
	return h.complete(a)
}

// complete checks that a names one rule or one limit, and reads the limit.
func (h *Handler) complete(a *asked) error {
	switch {
	case len(a.given) > 1:
		return problem.BadField("limit", "given with rule", "one of rule and limit")
	case a.Rule == "" && a.limit == "":
		return problem.BadField("rule", "missing", "the name of a rule in the file")
	case a.limit == "":
		return nil
	case !h.settings.Load().inlineLimits:
		return &problem.Problem{Status: http.StatusForbidden, Field: "limit",
			Detail: "limit is not allowed; " +
				"want a rule, or api.allow_inline_limits: true in the file"}
	case strings.Contains(a.limit, "="):
		return problem.BadField("limit", jsonbody.Quote(a.limit),
			"a limit without a name; a rule has a name")
	}
	l, err := headgate.ParseLimit(a.limit)
	if err != nil {
		p := *toProblem(err)
		p.Field = "limit"
		return &p
	}
	a.Limit = l
	return nil
}
