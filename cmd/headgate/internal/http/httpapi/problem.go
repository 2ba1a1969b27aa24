package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Problem is a problem document (RFC 9457) and the error that it reports.
type Problem struct { //nolint:errname // as RFC 9457 calls it
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"` // of the request, if one of them is wrong

	Authenticate string        `json:"-"` // WWW-Authenticate
	RetryAfter   time.Duration `json:"-"` // 0: unknown
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// BadField says that a field of the request is wrong.
func BadField(field, value, want string) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Field: field,
		Detail: field + " is " + value + "; want " + want,
	}
}

// toProblem returns the document for an error of the store or of the request.
func toProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		return BadField(e.Field, e.Value, e.Want)
	}
	if e, ok := errors.AsType[*rules.NoRuleError](err); ok {
		return &Problem{Status: http.StatusNotFound, Field: "rule",
			Detail: "rule is " + quote(e.Name) + "; want the name of a rule in the file"}
	}
	return unavailable(
		"the store is unavailable: nothing was decided, and a cost may have been charged", 0)
}

// unavailable returns the problem of a store that is unavailable.
func unavailable(detail string, retry time.Duration) *Problem {
	return &Problem{
		Type:   problemTypes + "temporary-reduced-capacity",
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable, Detail: detail, RetryAfter: retry,
	}
}

// WriteError answers with the problem document for err, an error of the store or of the request.
func WriteError(w http.ResponseWriter, err error) { toProblem(err).write(w) }

func (p *Problem) write(w http.ResponseWriter) {
	document := *p
	if document.Type == "" {
		document.Type, document.Title = "about:blank", http.StatusText(p.Status)
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // cannot happen: texts and a number
	}
	if p.Authenticate != "" {
		w.Header().Set("WWW-Authenticate", p.Authenticate)
	}
	if p.RetryAfter > 0 {
		setRetryAfter(w.Header(), p.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
