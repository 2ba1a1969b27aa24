package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
)

// problem is a problem document (RFC 9457) and the error that it reports.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"` // of the request, if one of them is wrong

	authenticate string // WWW-Authenticate
}

func (p *problem) Error() string { return p.Detail }

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// badField says that a field of the request is wrong.
func badField(field, value, want string) *problem {
	return &problem{
		Status: http.StatusBadRequest, Field: field,
		Detail: field + " is " + value + "; want " + want,
	}
}

// toProblem returns the document for an error of the store or of the request.
func toProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return badField(e.Field, e.Value, e.Want)
	}
	if e, ok := errors.AsType[*rules.NoRuleError](err); ok {
		return &problem{Status: http.StatusNotFound, Field: "rule",
			Detail: "rule is " + quote(e.Name) + "; want the name of a rule in the file"}
	}
	return &problem{
		Type:   problemTypes + "temporary-reduced-capacity",
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable,
		Detail: "the store is unavailable: nothing was decided, and a cost may have been charged",
	}
}

func (p *problem) write(w http.ResponseWriter) {
	document := *p
	if document.Type == "" {
		document.Type, document.Title = "about:blank", http.StatusText(p.Status)
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // cannot happen: texts and a number
	}
	if p.authenticate != "" {
		w.Header().Set("WWW-Authenticate", p.authenticate)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
