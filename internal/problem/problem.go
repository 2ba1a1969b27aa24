// Package problem writes problem documents (RFC 9457).
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Problem is a problem document and the error that it reports.
type Problem struct { //nolint:errname // as RFC 9457 calls it
	Type     string   `json:"type"`  // default: about:blank
	Title    string   `json:"title"` // default: the text of the status
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Field    string   `json:"field,omitempty"` // of the request, if one of them is wrong
	Violated []string `json:"violated-policies,omitempty"`

	Denial *Denial `json:"error,omitempty"`

	Authenticate string        `json:"-"` // WWW-Authenticate
	RetryAfter   time.Duration `json:"-"` // 0: unknown
}

// Denial is a denial as the APIs of models describe theirs, whose SDKs show nothing else of a body.
type Denial struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
}

const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Exceeded returns the problem of a request that limits deny.
func Exceeded(status int, detail string, violated []string) *Problem {
	return &Problem{
		Type:   quotaExceeded,
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: status, Detail: detail, Violated: violated,
	}
}

// Reduced returns the problem of a request that is denied because the store is unavailable.
func Reduced(status int, detail string) *Problem {
	return &Problem{
		Type:   reducedCapacity,
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: status, Detail: detail,
	}
}

// Unchecked is what it means for most requests that the store is unavailable.
const Unchecked = "the limits cannot be checked"

// Unavailable returns the problem of a store that is unavailable, and what that means.
func Unavailable(meaning string) *Problem {
	return Reduced(http.StatusServiceUnavailable, "the store is unavailable: "+meaning)
}

// BadField returns the problem of a field of the request that is wrong.
func BadField(field, value, want string) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Field: field,
		Detail: field + " is " + value + "; want " + want,
	}
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Complete sets the defaults of Type and Title.
func (p *Problem) Complete() {
	if p.Type == "" {
		p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	}
}

// JSON returns the document.
func (p *Problem) JSON() []byte {
	document := *p
	document.Complete()
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // cannot happen: strings and a number
	}
	return text
}

// Write answers with p.
func (p *Problem) Write(w http.ResponseWriter) {
	if p.Authenticate != "" {
		w.Header().Set("WWW-Authenticate", p.Authenticate)
	}
	if p.RetryAfter > 0 {
		SetRetryAfter(w.Header(), p.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(p.JSON(), '\n')) // the client may have disconnected
}

// SetRetryAfter sets the field to wait, unless no wait helps.
func SetRetryAfter(h http.Header, wait time.Duration) {
	if wait == headgate.Never {
		h.Del("Retry-After")
		return
	}
	h.Set("Retry-After", Seconds(wait))
}

// Seconds returns d in seconds, rounded up.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
