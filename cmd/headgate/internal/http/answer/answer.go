// Package answer writes verdicts as HTTP: header fields and problem documents (RFC 9457).
package answer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/problem"
)

// SetFields sets the fields that report v to the client: RateLimit-Policy, RateLimit,
// X-RateLimit-*, Retry-After and X-Should-Retry.
func SetFields(h http.Header, v *rules.Verdict) {
	now := time.Now()
	if v.Hides == nil {
		(httplimit.Draft10 | httplimit.XRateLimit).Write(h, now, v.Decisions...)
	} else {
		httplimit.Draft10.Write(h, now, v.Shown(httplimit.Draft10)...)
		httplimit.XRateLimit.Write(h, now, v.Shown(httplimit.XRateLimit)...)
	}
	if !v.Allowed && showsWait(v) {
		problem.SetRetryAfter(h, v.RetryAfter)
	}
	if v.GiveUp {
		h.Set("X-Should-Retry", "false") // which the SDKs of OpenAI and Anthropic obey
	}
}

// showsWait reports whether the client may know how long to wait.
func showsWait(v *rules.Verdict) bool { return v.Reply.Hides&httplimit.RetryAfter == 0 }

// Reports reports whether SetFields sets fields about limits.
func Reports(v *rules.Verdict) bool {
	return len(v.Shown(httplimit.Draft10))+len(v.Shown(httplimit.XRateLimit)) > 0
}

// FieldNames are the names of the fields that SetFields sets, and of those in older drafts of them.
func FieldNames() []string {
	return []string{
		"Ratelimit", "Ratelimit-Policy", "Retry-After",
		"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	}
}

// spellings are pairs: a name as net/http spells it, and as its specification does.
var spellings = [...][2]string{
	{"Ratelimit", "RateLimit"},
	{"Ratelimit-Policy", "RateLimit-Policy"},
	{"X-Ratelimit-Limit", "X-RateLimit-Limit"},
	{"X-Ratelimit-Remaining", "X-RateLimit-Remaining"},
	{"X-Ratelimit-Reset", "X-RateLimit-Reset"},
}

// Spell renames the fields in h to the spelling of their specifications. Some clients, such as Lua
// in nginx, distinguish the case of names. Call it just before h is sent, because
// [http.Header.Get] does not find these fields afterwards.
func Spell(h http.Header) {
	for _, s := range &spellings {
		if values, ok := h[s[0]]; ok {
			delete(h, s[0])
			h[s[1]] = values
		}
	}
}

// Unchecked reports whether a fallback denied v without having checked a limit.
func Unchecked(v *rules.Verdict) bool {
	return v.Reason == rules.Limits && headgate.Strictest(v.Decisions).Unchecked()
}

// Deny answers with the fields of v and a document that names the rule and the reason, or the body
// that the rule has instead. If no limit was checked, the status is 503.
func Deny(w http.ResponseWriter, status int, v *rules.Verdict) {
	if Unchecked(v) {
		problem.SetRetryAfter(w.Header(), v.RetryAfter)
		Unavailable(w)
		return
	}
	SetFields(w.Header(), v)
	p := denied(status, v)
	if d := v.Reply.Denial; d != nil {
		p.Complete()
		w.Header().Set("Content-Type", d.ContentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, d.Fill(rules.DenialValues{ // the client may have disconnected
			Type: p.Type, Title: p.Title, Detail: p.Detail, Rule: v.Rule, Status: status,
			RetryAfter: number(v.RetryAfter), Violated: p.Violated,
		}))
		return
	}
	p.Denial = &problem.Denial{
		Message: p.Detail, Type: "rate_limit_error", Code: "rate_limit_exceeded",
	}
	p.Write(w)
}

// number returns a wait in seconds, rounded up, or null if no wait helps.
func number(wait time.Duration) string {
	if wait == headgate.Never {
		return "null"
	}
	return problem.Seconds(wait)
}

// denied describes a denial.
func denied(status int, v *rules.Verdict) *problem.Problem {
	switch v.Reason {
	case rules.Ban:
		detail := "The rule " + v.Rule + " bans this client."
		return &problem.Problem{Status: status, Detail: detail}
	case rules.Permits:
		detail := "The rule " + v.Rule + " allows no more concurrent requests."
		return problem.Exceeded(status, detail, []string{v.Rule})
	case rules.Limits, rules.None:
	}
	return exceeded(status, v)
}

// exceeded names the limits that denied. While the store is unavailable, their shares did.
func exceeded(status int, v *rules.Verdict) *problem.Problem {
	var violated []string
	degraded := false
	for _, d := range v.Decisions {
		if !d.Allowed() {
			violated = append(violated, d.Limit.Name())
			degraded = degraded || d.Degraded()
		}
	}
	rule, retry := "The rule "+v.Rule, " Retry in "+problem.Seconds(v.RetryAfter)+" s."
	if !showsWait(v) {
		retry = ""
	}
	switch {
	case v.RetryAfter == headgate.Never:
		detail := rule + " can never grant a request of this cost."
		return problem.Exceeded(status, detail, violated)
	case degraded:
		return problem.Reduced(status, rule+" grants only a share: the store is unavailable."+retry)
	default:
		return problem.Exceeded(status, rule+" is exceeded."+retry, violated)
	}
}

// Unavailable answers a request that cannot be decided, because the store is unavailable.
func Unavailable(w http.ResponseWriter) { problem.Unavailable(problem.Unchecked).Write(w) }

// Undecided answers r, which could not be decided: with 503, or 499 if its client has left.
func Undecided(w http.ResponseWriter, r *http.Request) {
	if !Left(w, r) {
		Unavailable(w)
	}
}

// Left reports whether the client of r has left. Then it answers with 499, as nginx logs it.
func Left(w http.ResponseWriter, r *http.Request) bool {
	left := errors.Is(r.Context().Err(), context.Canceled)
	if left {
		w.WriteHeader(499)
	}
	return left
}

// Fail answers with a status and a detail.
func Fail(w http.ResponseWriter, status int, detail string) {
	(&problem.Problem{Status: status, Detail: detail}).Write(w)
}

// Refuse answers a request to a model that a limit cannot count, in the form that its SDKs show.
func Refuse(w http.ResponseWriter, status int, detail string) {
	if status == http.StatusUpgradeRequired {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "HTTP/1.1") // without a websocket
	}
	why := &problem.Denial{Message: detail, Type: "invalid_request_error", Code: "uncounted"}
	(&problem.Problem{Status: status, Detail: detail, Denial: why}).Write(w)
}
