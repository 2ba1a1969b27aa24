package httpapi

import (
	"errors"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/jsonbody"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// WriteError answers with the problem document for err, an error of the store or of the request.
func WriteError(w http.ResponseWriter, err error) { toProblem(err).Write(w) }

// Unavailable returns the problem for err, or err if it is one. If the store is the cause, the
// problem says so, and then meaning.
func Unavailable(err error, meaning string) error {
	if p := toProblem(err); p.Status != http.StatusServiceUnavailable || errors.Is(err, p) {
		return p
	}
	return problem.Unavailable(meaning)
}

func toProblem(err error) *problem.Problem {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return problem.BadField(e.Field, e.Value, e.Want)
	}
	if e, ok := errors.AsType[*rules.KeyError](err); ok {
		return &problem.Problem{Status: http.StatusBadRequest, Field: "key",
			Detail: "key: " + e.Error()}
	}
	if e, ok := errors.AsType[*rules.NoRuleError](err); ok {
		return &problem.Problem{Status: http.StatusNotFound, Field: "rule",
			Detail: "rule is " + jsonbody.Quote(e.Name) + "; want the name of a rule in the file"}
	}
	return problem.Unavailable("the request was not decided, but its cost may have been charged")
}
