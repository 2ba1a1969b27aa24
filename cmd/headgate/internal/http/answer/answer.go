// Package answer writes verdicts as HTTP: header fields and problem documents (RFC 9457).
package answer

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/httplimit"
)

// Problem is a problem document.
type Problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

// Types of draft-ietf-httpapi-ratelimit-headers-10, and the type without a meaning of its own.
const (
	quotaExceeded    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	notMoreSpecific  = "about:blank"
	titleOfExceeded  = "Request cannot be satisfied as assigned quota has been exceeded"
	titleOfReduction = "Request cannot be satisfied due to temporary server capacity constraints"
)

// SetFields sets the fields that report v to the client: RateLimit-Policy, RateLimit,
// X-RateLimit-* and Retry-After.
func SetFields(h http.Header, v *rules.Verdict) {
	if len(v.Decisions) > 0 {
		httplimit.AllFields.Write(h, time.Now(), v.Decisions...)
	}
	if !v.Allowed && v.Reason != rules.Limits && v.RetryAfter != headgate.Never {
		h.Set("Retry-After", strconv.FormatInt(seconds(v.RetryAfter), 10))
	}
}

// FieldNames are the names of the fields that SetFields sets.
func FieldNames() []string {
	return []string{
		"Ratelimit", "Ratelimit-Policy", "Retry-After",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	}
}

// Unchecked reports whether a fallback denied v without having checked a limit.
func Unchecked(v *rules.Verdict) bool {
	return v.Reason == rules.Limits && headgate.Strictest(v.Decisions).Unchecked()
}

// Deny answers with the fields of v and a document that names the rule and the reason. If no limit
// was checked, the status is 503.
func Deny(w http.ResponseWriter, status int, v *rules.Verdict) {
	if Unchecked(v) {
		httplimit.RetryAfter.Write(w.Header(), time.Now(), v.Decisions...)
		Unavailable(w)
		return
	}
	SetFields(w.Header(), v)
	p := &Problem{Type: quotaExceeded, Title: titleOfExceeded, Status: status}
	switch v.Reason {
	case rules.Ban:
		p.Type, p.Title = notMoreSpecific, http.StatusText(status)
		p.Detail = "The rule " + v.Rule + " bans this client."
	case rules.Permits:
		p.Violated = []string{v.Rule}
		p.Detail = "The rule " + v.Rule + " allows no more concurrent requests."
	case rules.Limits, rules.None:
		p.exceeded(v)
	}
	p.Write(w)
}

// exceeded says which limits denied, or that their shares did while the store is unavailable.
func (p *Problem) exceeded(v *rules.Verdict) {
	degraded := false
	for _, d := range v.Decisions {
		if !d.Allowed() {
			p.Violated = append(p.Violated, d.Limit.Name())
			degraded = degraded || d.Degraded()
		}
	}
	retry := " Retry in " + strconv.FormatInt(seconds(v.RetryAfter), 10) + " s."
	switch {
	case v.RetryAfter == headgate.Never:
		p.Detail = "The rule " + v.Rule + " can never grant a request of this cost."
	case degraded:
		p.Type, p.Title, p.Violated = reducedCapacity, titleOfReduction, nil
		p.Detail = "The rule " + v.Rule + " grants only a share at the moment." + retry
	default:
		p.Detail = "The rule " + v.Rule + " is exceeded." + retry
	}
}

// Unavailable answers a request that cannot be decided, because the store is unavailable.
func Unavailable(w http.ResponseWriter) {
	p := &Problem{
		Type: reducedCapacity, Title: titleOfReduction, Status: http.StatusServiceUnavailable,
		Detail: "The limits of this request cannot be checked at the moment.",
	}
	p.Write(w)
}

// Fail answers with a status and a detail.
func Fail(w http.ResponseWriter, status int, detail string) {
	p := &Problem{
		Type: notMoreSpecific, Title: http.StatusText(status), Status: status, Detail: detail,
	}
	p.Write(w)
}

// Write answers with p.
func (p *Problem) Write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: strings and a number
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
